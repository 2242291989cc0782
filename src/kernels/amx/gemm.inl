// GEMM on AMX tiles: 32 rows x 32 columns at a time, K streamed. TDPBF16PS is the canonical step by
// definition (docs/NUMERICS.md). The SLUICE_TILE_* macros are the instructions, or their software
// model in the tests of machines without AMX.
//
// A pass is as many panels as stay in the L2 cache, one K slice of them at a time, and all rows (up
// to kPassRows) meet them there before the next ones come from memory. Which sums are formed, and
// in which order, does not depend on that.

constexpr std::int64_t kTileRows = 16;
constexpr std::int64_t kBlockRows = 2 * kTileRows;
constexpr std::int64_t kPassRows = 512;
constexpr std::int64_t kPassPanels = 8;
constexpr std::int64_t kPassBytes = std::int64_t{768} << 10;   // of one slice of its panels
constexpr std::int64_t kPrefetchElements = 4 * kStepElements;  // ahead

struct Pass {
  std::int64_t row_begin;
  std::int64_t row_end;
  std::int64_t panel_begin;
  std::int64_t panel_end;
};

struct TileBlock {
  std::int64_t row;
  std::int64_t upper_rows;  // 1 .. 16
  std::int64_t lower_rows;  // 0 .. 16

  std::int64_t rows() const { return upper_rows + lower_rows; }
};

struct Steps {
  std::int64_t begin;
  std::int64_t end;
  bool from_memory;  // nobody has read these weights lately
};

// out[rows of the block][32] = product of the block's rows with one panel over some steps.
static void tile_sum(const GemmArgs& args, const TileBlock& block, std::int64_t panel,
                     const Steps& steps, float* out, std::int64_t out_stride) {
  const bf16_t* upper = args.a + block.row * args.a_stride;
  const bf16_t* lower = upper + kTileRows * args.a_stride;
  const std::int64_t a_bytes = args.a_stride * 2;
  const bf16_t* w = args.w + panel * args.k_steps * kStepElements;
  const std::int64_t out_bytes = out_stride * 4;
  SLUICE_TILE_ZERO(0);
  SLUICE_TILE_ZERO(1);
  if (block.lower_rows > 0) {
    SLUICE_TILE_ZERO(2);
    SLUICE_TILE_ZERO(3);
  }
  for (std::int64_t s = steps.begin; s < steps.end; ++s) {
    if (steps.from_memory) {
      for (std::int64_t i = 0; i < kStepElements; i += 32) {
        SLUICE_TILE_PREFETCH(w + s * kStepElements + kPrefetchElements + i);
      }
    }
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
  SLUICE_TILE_BARRIER();
  SLUICE_TILE_STORE(0, out, out_bytes);
  SLUICE_TILE_STORE(1, out + 16, out_bytes);
  if (block.lower_rows > 0) {
    SLUICE_TILE_STORE(2, out + kTileRows * out_stride, out_bytes);
    SLUICE_TILE_STORE(3, out + kTileRows * out_stride + 16, out_bytes);
  }
  SLUICE_TILE_BARRIER();
}

// The sums of slice `slice` of a panel, put where (s0 + s1) + (s2 + s3) comes out at the end.
// third: [rows of the block][32], holds s2 until s3 is there.
static void add_slice(const GemmArgs& args, const TileBlock& block, std::int64_t panel,
                      std::int64_t slice, const Steps& steps, float* third) {
  alignas(64) float sums[kBlockRows * kPanelColumns];
  const std::int64_t column = panel * kPanelColumns;
  const bool whole = args.n - column >= kPanelColumns;
  const std::int64_t columns = whole ? kPanelColumns : args.n - column;
  float* out = args.out + block.row * args.out_stride + column;
  if (slice == 0 && whole) {
    tile_sum(args, block, panel, steps, out, args.out_stride);
    return;
  }
  if (slice == 2) {
    tile_sum(args, block, panel, steps, third, kPanelColumns);
    return;
  }
  tile_sum(args, block, panel, steps, sums, kPanelColumns);
  for (std::int64_t r = 0; r < block.rows(); ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      float& value = out[r * args.out_stride + c];
      const float sum = sums[r * kPanelColumns + c];
      value = slice == 0   ? sum
              : slice == 1 ? value + sum
                           : value + (third[r * kPanelColumns + c] + sum);
    }
  }
}

static void run_pass(const GemmArgs& args, const Pass& pass) {
  alignas(64) float thirds[kPassRows * kPassPanels * kPanelColumns];
  const std::int64_t slice_steps = args.k_steps / args.k_slices;
  std::int64_t configured_rows = 0;
  for (std::int64_t slice = 0; slice < args.k_slices; ++slice) {
    float* third = thirds;
    for (std::int64_t row = pass.row_begin; row < pass.row_end; row += kBlockRows) {
      const std::int64_t left = pass.row_end - row;
      const std::int64_t rows = left < kBlockRows ? left : kBlockRows;
      const std::int64_t upper = rows < kTileRows ? rows : kTileRows;
      const TileBlock block{row, upper, rows - upper};
      if (rows != configured_rows) {
        const TileConfig config =
            product_config(static_cast<int>(upper), static_cast<int>(rows - upper));
        SLUICE_TILE_BARRIER();
        SLUICE_TILE_CONFIGURE(&config);
        SLUICE_TILE_BARRIER();
        configured_rows = rows;
      }
      const Steps steps{slice * slice_steps, (slice + 1) * slice_steps, row == pass.row_begin};
      for (std::int64_t panel = pass.panel_begin; panel < pass.panel_end; ++panel) {
        add_slice(args, block, panel, slice, steps, third);
        third += kBlockRows * kPanelColumns;
      }
    }
  }
}

static void gemm_bf16(const GemmArgs& args) noexcept {
  const std::int64_t slice_bytes = args.k_steps / args.k_slices * kStepElements * 2;
  std::int64_t panels = args.m <= kBlockRows ? 1 : kPassBytes / slice_bytes;
  panels = panels < 1 ? 1 : panels > kPassPanels ? kPassPanels : panels;
  for (std::int64_t row = 0; row < args.m; row += kPassRows) {
    const std::int64_t row_end = row + kPassRows < args.m ? row + kPassRows : args.m;
    for (std::int64_t panel = args.panel_begin; panel < args.panel_end; panel += panels) {
      const std::int64_t end = panel + panels < args.panel_end ? panel + panels : args.panel_end;
      run_pass(args, {row, row_end, panel, end});
    }
  }
  SLUICE_TILE_RELEASE();
}
