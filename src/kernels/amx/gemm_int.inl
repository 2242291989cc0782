// Integer products: steps of 64 k; the rows already lie in tiles (weight_format.h).

template <typename Weights>
struct IntProduct {
  using Args = IntGemmArgs;
  using Sum = std::int32_t;
  static constexpr bool kIntegers = true;
  static constexpr bool kDecodes = Weights::kDecodes;
  static constexpr std::int64_t kStepBytes = Weights::kStepBytes;
  static constexpr std::int64_t kSumsKept = 1;

  static std::int64_t slices(const IntGemmArgs&) { return 1; }

  static std::int64_t panel_stride(const IntGemmArgs& args) {
    return panel_bytes(Weights::kFormat, args.k_steps * kIntStepK);
  }
  static const std::byte* scales(const IntGemmArgs& args, std::int64_t panel) {
    return args.w + panel * panel_stride(args);
  }
  static const std::byte* steps(const IntGemmArgs& args, std::int64_t panel) {
    return scales(args, panel) + kPanelScaleBytes;
  }
  static void decode_step(const IntGemmArgs& args, std::int64_t panel, std::int64_t step,
                          std::byte* tiles) {
    Weights::decode_step(steps(args, panel) + step * kStepBytes, tiles);
  }

  static void finish(const IntGemmArgs& args, const Block& block, std::int64_t,
                     const std::int32_t* sums, const std::int32_t*) {
    const std::int64_t column = block.panel * kPanelColumns;
    const auto* column_scales = reinterpret_cast<const float*>(scales(args, block.panel));
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const V16 row_scale = set1(args.a_scale[block.row + r]);
      for (std::int64_t half = 0; half < kPanelColumns && column + half < args.n; half += 16) {
        const V16 sum = to_float(load_i32(sums + r * kPanelColumns + half));
        store_first(args.out + (block.row + r) * args.out_stride + column + half,
                    mul(mul(sum, load(column_scales + half)), row_scale), args.n - column - half);
      }
    }
  }
};

static void gemm_int8(const IntGemmArgs& args) noexcept {
  multiply<IntProduct<Int8Weights>>(args);
}

static void gemm_int4(const IntGemmArgs& args) noexcept {
  multiply<IntProduct<Int4Weights>>(args);
}
