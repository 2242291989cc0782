// Integer GEMM: decode a few steps of a panel, let all rows of a block meet them, go on. Sums are
// exact, so the order is free.

constexpr std::int64_t kIntBlockRows = 64;
constexpr std::int64_t kIntBlockSteps = 8;  // 16 KB of decoded weights: they stay in L1

// sum[r][32] = initial sums + product of the rows at `a` with `steps` decoded steps.
template <int kRows>
SLUICE_INLINE void int_rows(const std::int8_t* const* a, const std::byte* tiles, std::int64_t steps,
                            std::int32_t* sum) {
  for (int half = 0; half < 2; half += kIntHalves) {
    I16 acc[kRows][kIntHalves];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int h = 0; h < kIntHalves; ++h) {
        acc[r][h] = load_i32(sum + r * kPanelColumns + (half + h) * 16);
      }
    }
    for (std::int64_t s = 0; s < steps; ++s) {
      const std::byte* tile = tiles + s * kIntStepBytes + half * kIntTileBytes;
#pragma GCC unroll 2
      for (int quad = 0; quad < 16; ++quad) {
        Weights w[kIntHalves];
#pragma GCC unroll 2
        for (int h = 0; h < kIntHalves; ++h) {
          w[h] = prepare(load_bytes(tile + h * kIntTileBytes + quad * 64));
        }
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
          for (int h = 0; h < kIntHalves; ++h) {
            acc[r][h] = dot4(acc[r][h], w[h], a[r] + s * kIntTileBytes + quad * 4);
          }
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int h = 0; h < kIntHalves; ++h) {
        store_i32(sum + r * kPanelColumns + (half + h) * 16, acc[r][h]);
      }
    }
  }
}

// The rows of a block: where each lies, and what its sums start from.
struct IntBlock {
  std::int64_t row;
  std::int64_t rows;
  const std::int8_t* a[kIntBlockRows];
  std::int32_t row_sum[kIntBlockRows];
};

static IntBlock int_block(const IntGemmArgs& args, std::int64_t row, std::int64_t rows) {
  IntBlock block;
  block.row = row;
  block.rows = rows;
  for (std::int64_t r = 0; r < rows; ++r) {
    block.a[r] = args.a + int_row_offset(row + r, args.k_steps);
    std::int32_t sum = 0;
    for (std::int64_t s = 0; kStartNeedsRowSum && s < args.k_steps; ++s) {
      for (std::int64_t i = 0; i < kIntStepK; ++i) {
        sum += block.a[r][s * kIntTileBytes + i];
      }
    }
    block.row_sum[r] = sum;
  }
  return block;
}

static void add_steps(const IntBlock& block, std::int64_t step, std::int64_t steps,
                      const std::byte* tiles, std::int32_t* sums) {
  const std::int8_t* a[kIntBlockRows];
  for (std::int64_t r = 0; r < block.rows; ++r) {
    a[r] = block.a[r] + step * kIntTileBytes;
  }
  std::int64_t r = 0;
  for (; r + kIntRows <= block.rows; r += kIntRows) {
    int_rows<kIntRows>(a + r, tiles, steps, sums + r * kPanelColumns);
  }
  for (; r < block.rows; ++r) {
    int_rows<1>(a + r, tiles, steps, sums + r * kPanelColumns);
  }
}

static void scale_and_store(const IntGemmArgs& args, const IntBlock& block, std::int64_t panel,
                            const float* column_scales, const std::int32_t* sums) {
  const std::int64_t column = panel * kPanelColumns;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const std::int64_t row = block.row + r;
    const V16 row_scale = set1(args.a_scale[row]);
    float* out = args.out + row * args.out_stride + column;
    for (std::int64_t half = 0; half < kPanelColumns && column + half < args.n; half += 16) {
      const V16 sum = to_float(load_i32(sums + r * kPanelColumns + half));
      store_first(out + half, mul(mul(sum, load(column_scales + half)), row_scale),
                  args.n - column - half);
    }
  }
}

template <typename Format>
static void gemm_int_panel(const IntGemmArgs& args, const IntBlock& block, std::int64_t panel) {
  alignas(64) std::byte decoded[Format::kDecodes ? kIntBlockSteps * kIntStepBytes : 64];
  alignas(64) std::int32_t sums[kIntBlockRows * kPanelColumns];
  const std::byte* w = args.w + panel * panel_bytes(Format::kFormat, args.k_steps * kIntStepK);
  const std::byte* steps = w + kPanelScaleBytes;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    store_i32(sums + r * kPanelColumns, start_of(block.row_sum[r]));
    store_i32(sums + r * kPanelColumns + 16, start_of(block.row_sum[r]));
  }
  for (std::int64_t step = 0; step < args.k_steps; step += kIntBlockSteps) {
    const std::int64_t left = args.k_steps - step;
    const std::int64_t count = left < kIntBlockSteps ? left : kIntBlockSteps;
    const std::byte* tiles = steps + step * Format::kStepBytes;
    if constexpr (Format::kDecodes) {
      for (std::int64_t s = 0; s < count; ++s) {
        Format::decode_step(tiles + s * Format::kStepBytes, decoded + s * kIntStepBytes);
      }
      tiles = decoded;
    }
    add_steps(block, step, count, tiles, sums);
  }
  scale_and_store(args, block, panel, reinterpret_cast<const float*>(w), sums);
}

template <typename Format>
static void gemm_int(const IntGemmArgs& args) noexcept {
  for (std::int64_t row = 0; row < args.m; row += kIntBlockRows) {
    const std::int64_t rows = args.m - row < kIntBlockRows ? args.m - row : kIntBlockRows;
    const IntBlock block = int_block(args, row, rows);
    for (std::int64_t panel = args.panel_begin; panel < args.panel_end; ++panel) {
      gemm_int_panel<Format>(args, block, panel);
    }
  }
}

static void gemm_int8(const IntGemmArgs& args) noexcept {
  gemm_int<Int8Weights>(args);
}

static void gemm_int4(const IntGemmArgs& args) noexcept {
  gemm_int<Int4Weights>(args);
}
