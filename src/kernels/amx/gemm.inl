// Products of bf16 weights, and of fp8 ones once they are bf16: steps of 32 k, K in one slice or in
// four.

template <typename Weights>
struct FloatProduct {
  using Args = GemmArgs;
  using Sum = float;
  static constexpr bool kIntegers = false;
  static constexpr bool kDecodes = Weights::kDecodes;
  static constexpr std::int64_t kStepBytes = Weights::kStepBytes;
  static constexpr std::int64_t kSumsKept = 2;

  static std::int64_t slices(const GemmArgs& args) { return args.k_slices; }

  static std::int64_t panel_stride(const GemmArgs& args) {
    return panel_bytes(Weights::kFormat, args.k_steps * kStepK);
  }
  static const std::byte* scales(const GemmArgs& args, std::int64_t panel) {
    return args.w + panel * panel_stride(args);
  }
  static const std::byte* steps(const GemmArgs& args, std::int64_t panel) {
    return scales(args, panel) + scale_bytes(Weights::kFormat, args.k_steps * kStepK);
  }
  static void decode_step(const GemmArgs& args, std::int64_t panel, std::int64_t step,
                          std::byte* tiles) {
    Weights::decode_step(steps(args, panel) + step * kStepBytes,
                         fp8_scale(scales(args, panel), step), tiles);
  }

  // The sums of a slice, put where (s0 + s1) + (s2 + s3) comes out at the end.
  static void finish(const GemmArgs& args, const Block& block, std::int64_t slice,
                     const float* sums, const float* third) {
    const std::int64_t column = block.panel * kPanelColumns;
    for (std::int64_t r = 0; slice != 2 && r < block.rows; ++r) {
      for (std::int64_t half = 0; half < kPanelColumns && column + half < args.n; half += 16) {
        const std::int64_t at = r * kPanelColumns + half;
        const std::int64_t count = args.n - column - half;
        float* out = args.out + (block.row + r) * args.out_stride + column + half;
        V16 sum = load(sums + at);
        if (slice == 1) {
          sum = add(load_first(out, count), sum);
        } else if (slice == 3) {
          sum = add(load_first(out, count), add(load(third + at), sum));
        }
        store_first(out, sum, count);
      }
    }
  }
};

static void gemm_bf16(const GemmArgs& args) noexcept {
  multiply<FloatProduct<Bf16Weights>>(args);
}

static void gemm_fp8(const GemmArgs& args) noexcept {
  multiply<FloatProduct<Fp8Weights>>(args);
}
