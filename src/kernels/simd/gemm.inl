// GEMM on packed weights. Blocks of rows and panels only change the order in which outputs are
// visited, never the order inside one output.

constexpr std::int64_t kGemmRows = 32;     // rows whose widened activations stay in L2
constexpr std::int64_t kGemmSteps = 16;    // 512 k: 64 KB of widened activations
constexpr std::int64_t kGemmPanels = 8;    // 256 columns: 32 KB of sums
constexpr std::int64_t kDecodedSteps = 4;  // 8 KB of decoded weights

struct GemmBlock {
  std::int64_t row;
  std::int64_t rows;
  std::int64_t panel;
  std::int64_t panels;
};

// Steps of one panel, and the rows that meet them.
struct PanelSteps {
  const std::byte* panel;
  std::int64_t k_steps;  // of the panel
  std::int64_t step;
  std::int64_t steps;
  const float* a;  // [rows][kGemmSteps * kStepK]
  std::int64_t rows;
};

// c[row][32] = initial + product; initial may be null for zero.
template <typename Weights>
static void add_panel(const PanelSteps& part, const float* initial, float* c) {
  constexpr std::int64_t kStride = kGemmSteps * kStepK;
  const std::byte* w = part.panel + scale_bytes(Weights::kFormat, part.k_steps * kStepK) +
                       part.step * Weights::kStepBytes;
  if constexpr (!Weights::kDecodes) {
    product_panel(part.a, kStride, reinterpret_cast<const bf16_t*>(w), part.steps, initial, c,
                  kPanelColumns, part.rows);
  } else {
    alignas(64) bf16_t decoded[kDecodedSteps * kStepElements];
    for (std::int64_t s = 0; s < part.steps; s += kDecodedSteps) {
      const std::int64_t left = part.steps - s;
      const std::int64_t count = left < kDecodedSteps ? left : kDecodedSteps;
      for (std::int64_t i = 0; i < count; ++i) {
        Weights::decode_step(w + (s + i) * Weights::kStepBytes,
                             fp8_scale(part.panel, part.step + s + i),
                             reinterpret_cast<std::byte*>(decoded + i * kStepElements));
      }
      product_panel(part.a + s * kStepK, kStride, decoded, count, s == 0 ? initial : c, c,
                    kPanelColumns, part.rows);
    }
  }
}

// sum[panel][row][32] = product over steps [begin, end).
template <typename Weights>
static void sum_steps(const GemmArgs& args, const GemmBlock& block, std::int64_t begin,
                      std::int64_t end, float* sum) {
  alignas(64) float a[kGemmRows * kGemmSteps * kStepK];
  const std::int64_t panel_stride = panel_bytes(Weights::kFormat, args.k_steps * kStepK);
  for (std::int64_t step = begin; step < end; step += kGemmSteps) {
    const std::int64_t steps = end - step < kGemmSteps ? end - step : kGemmSteps;
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const bf16_t* tile = args.a + row_offset(block.row + r, args.k_steps) + step * kTileElements;
      for (std::int64_t s = 0; s < steps; ++s) {
        widen(tile + s * kTileElements, kStepK, a + (r * kGemmSteps + s) * kStepK);
      }
    }
    for (std::int64_t p = 0; p < block.panels; ++p) {
      float* c = sum + p * kGemmRows * kPanelColumns;
      add_panel<Weights>({.panel = args.w + (block.panel + p) * panel_stride,
                          .k_steps = args.k_steps,
                          .step = step,
                          .steps = steps,
                          .a = a,
                          .rows = block.rows},
                         step == begin ? nullptr : c, c);
    }
  }
}

static void add_sums(float* x, const float* y, const GemmBlock& block) {
  for (std::int64_t i = 0; i < block.panels * kGemmRows * kPanelColumns; i += 16) {
    store(x + i, add(load(x + i), load(y + i)));
  }
}

template <typename Weights>
static void gemm_block(const GemmArgs& args, const GemmBlock& block) {
  alignas(64) float sums[3][kGemmPanels * kGemmRows * kPanelColumns];
  if (args.k_slices == 1) {
    sum_steps<Weights>(args, block, 0, args.k_steps, sums[0]);
  } else {
    const std::int64_t quarter = args.k_steps / 4;
    sum_steps<Weights>(args, block, 0, quarter, sums[0]);
    sum_steps<Weights>(args, block, quarter, 2 * quarter, sums[1]);
    add_sums(sums[0], sums[1], block);
    sum_steps<Weights>(args, block, 2 * quarter, 3 * quarter, sums[1]);
    sum_steps<Weights>(args, block, 3 * quarter, args.k_steps, sums[2]);
    add_sums(sums[1], sums[2], block);
    add_sums(sums[0], sums[1], block);
  }
  for (std::int64_t p = 0; p < block.panels; ++p) {
    const std::int64_t column = (block.panel + p) * kPanelColumns;
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const float* c = sums[0] + (p * kGemmRows + r) * kPanelColumns;
      float* out = args.out + (block.row + r) * args.out_stride + column;
      for (std::int64_t half = 0; half < kPanelColumns && column + half < args.n; half += 16) {
        store_first(out + half, load(c + half), args.n - column - half);
      }
    }
  }
}

template <typename Weights>
static void gemm(const GemmArgs& args) {
  for (std::int64_t panel = args.panel_begin; panel < args.panel_end; panel += kGemmPanels) {
    const std::int64_t panels =
        args.panel_end - panel < kGemmPanels ? args.panel_end - panel : kGemmPanels;
    for (std::int64_t row = 0; row < args.m; row += kGemmRows) {
      const std::int64_t rows = args.m - row < kGemmRows ? args.m - row : kGemmRows;
      gemm_block<Weights>(args, {row, rows, panel, panels});
    }
  }
}

static void gemm_bf16(const GemmArgs& args) noexcept {
  gemm<Bf16Weights>(args);
}

static void gemm_fp8(const GemmArgs& args) noexcept {
  gemm<Fp8Weights>(args);
}
