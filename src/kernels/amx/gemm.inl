// GEMM on AMX tiles: 32 rows x 32 columns per block, K streamed. TDPBF16PS is the canonical step by
// definition (docs/NUMERICS.md). The SLUICE_TILE_* macros are the instructions, or their software
// model in the tests of machines without AMX.

constexpr std::int64_t kTileRows = 16;

struct TileBlock {
  std::int64_t row;
  std::int64_t upper_rows;  // 1 .. 16
  std::int64_t lower_rows;  // 0 .. 16
};

// out[32][32] = product of the block's rows with one panel over steps [begin, end).
static void tile_sum(const GemmArgs& args, const TileBlock& block, std::int64_t panel,
                     std::int64_t begin, std::int64_t end, float* out) {
  const bf16_t* upper = args.a + block.row * args.a_stride;
  const bf16_t* lower = upper + kTileRows * args.a_stride;
  const std::int64_t a_bytes = args.a_stride * 2;
  const bf16_t* w = args.w + panel * args.k_steps * kStepElements;
  constexpr std::int64_t kOutBytes = kPanelColumns * 4;
  SLUICE_TILE_ZERO(0);
  SLUICE_TILE_ZERO(1);
  if (block.lower_rows > 0) {
    SLUICE_TILE_ZERO(2);
    SLUICE_TILE_ZERO(3);
  }
  for (std::int64_t s = begin; s < end; ++s) {
    SLUICE_TILE_LOAD(4, upper + s * kStepK, a_bytes);
    SLUICE_TILE_LOAD(6, w + s * kStepElements, 64);
    SLUICE_TILE_LOAD(7, w + s * kStepElements + kTileElements, 64);
    SLUICE_TILE_DOT(0, 4, 6);
    SLUICE_TILE_DOT(1, 4, 7);
    if (block.lower_rows > 0) {
      SLUICE_TILE_LOAD(5, lower + s * kStepK, a_bytes);
      SLUICE_TILE_DOT(2, 5, 6);
      SLUICE_TILE_DOT(3, 5, 7);
    }
  }
  SLUICE_TILE_STORE(0, out, kOutBytes);
  SLUICE_TILE_STORE(1, out + 16, kOutBytes);
  if (block.lower_rows > 0) {
    SLUICE_TILE_STORE(2, out + kTileRows * kPanelColumns, kOutBytes);
    SLUICE_TILE_STORE(3, out + kTileRows * kPanelColumns + 16, kOutBytes);
  }
  SLUICE_TILE_BARRIER();
}

static void tile_panel(const GemmArgs& args, const TileBlock& block, std::int64_t panel) {
  alignas(64) float sums[4][2 * kTileRows * kPanelColumns];
  const std::int64_t slice_steps = args.k_steps / args.k_slices;
  for (std::int64_t s = 0; s < args.k_slices; ++s) {
    tile_sum(args, block, panel, s * slice_steps, (s + 1) * slice_steps, sums[s]);
  }
  const std::int64_t rows = block.upper_rows + block.lower_rows;
  const std::int64_t column = panel * kPanelColumns;
  const std::int64_t columns = args.n - column < kPanelColumns ? args.n - column : kPanelColumns;
  for (std::int64_t r = 0; r < rows; ++r) {
    float* out = args.out + (block.row + r) * args.out_stride + column;
    const std::int64_t at = r * kPanelColumns;
    for (std::int64_t c = 0; c < columns; ++c) {
      out[c] = args.k_slices == 1
                   ? sums[0][at + c]
                   : (sums[0][at + c] + sums[1][at + c]) + (sums[2][at + c] + sums[3][at + c]);
    }
  }
}

static void gemm_bf16(const GemmArgs& args) noexcept {
  for (std::int64_t row = 0; row < args.m; row += 2 * kTileRows) {
    const std::int64_t left = args.m - row;
    const std::int64_t upper = left < kTileRows ? left : kTileRows;
    const std::int64_t lower = left <= kTileRows              ? 0
                               : left - kTileRows < kTileRows ? left - kTileRows
                                                              : kTileRows;
    const TileBlock block{row, upper, lower};
    const TileConfig config = product_config(static_cast<int>(upper), static_cast<int>(lower));
    SLUICE_TILE_BARRIER();
    SLUICE_TILE_CONFIGURE(&config);
    SLUICE_TILE_BARRIER();
    for (std::int64_t panel = args.panel_begin; panel < args.panel_end; ++panel) {
      tile_panel(args, block, panel);
    }
  }
  SLUICE_TILE_RELEASE();
}
