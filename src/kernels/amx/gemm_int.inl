// Integer GEMM on AMX tiles: 32 rows x 32 columns at a time, steps of 64 k. TDPBSSD sums are exact,
// so blocking is free: see gemm.inl for the SLUICE_TILE_* macros and product_config() for tiles.
//
// Up to 32 rows (decode): every panel is one stream from memory, decoded a few steps ahead.
// More rows: a pass is 512 rows x 8 panels; their sums stay in the L2 cache beside 16 steps of
// decoded weights, and the next 16 steps are fetched meanwhile.

constexpr std::int64_t kIntRows = 32;  // of a block
constexpr std::int64_t kIntPassBlocks = 16;
constexpr std::int64_t kIntPassPanels = 8;
constexpr std::int64_t kIntPassSteps = 16;
constexpr std::int64_t kIntAhead = 2;  // steps decoded before they are used
constexpr std::int64_t kIntRing = 4;
constexpr std::int64_t kIntPrefetchBytes = 8192;
constexpr std::int64_t kIntSums = kIntRows * kPanelColumns;

static void configure_rows(std::int64_t rows) {
  const std::int64_t upper = rows < 16 ? rows : 16;
  const TileConfig config = product_config(static_cast<int>(upper), static_cast<int>(rows - upper));
  SLUICE_TILE_BARRIER();
  SLUICE_TILE_CONFIGURE(&config);
  SLUICE_TILE_BARRIER();
}

static void prefetch_bytes(const std::byte* begin, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 64) {
    SLUICE_TILE_PREFETCH(reinterpret_cast<const char*>(begin + i));
  }
}

// The sums of a block in tiles 0 to 3. a: the first step of the block's upper 16 rows; the lower
// ones lie k_steps tiles on.
struct IntSums {
  bool has_lower;

  void zero() const {
    SLUICE_TILE_ZERO(0);
    SLUICE_TILE_ZERO(1);
    if (has_lower) {
      SLUICE_TILE_ZERO(2);
      SLUICE_TILE_ZERO(3);
    }
  }
  void load(const std::int32_t* sums) const {
    SLUICE_TILE_LOAD(0, sums, kPanelColumns * 4);
    SLUICE_TILE_LOAD(1, sums + 16, kPanelColumns * 4);
    if (has_lower) {
      SLUICE_TILE_LOAD(2, sums + 16 * kPanelColumns, kPanelColumns * 4);
      SLUICE_TILE_LOAD(3, sums + 16 * kPanelColumns + 16, kPanelColumns * 4);
    }
  }
  void add_step(const std::int8_t* upper, const std::int8_t* lower, const std::byte* tiles) const {
    SLUICE_TILE_LOAD(6, tiles, 64);
    SLUICE_TILE_LOAD(4, upper, 64);
    SLUICE_TILE_DOT_INT8(0, 4, 6);
    SLUICE_TILE_LOAD(7, tiles + kIntTileBytes, 64);
    SLUICE_TILE_DOT_INT8(1, 4, 7);
    if (has_lower) {
      SLUICE_TILE_LOAD(5, lower, 64);
      SLUICE_TILE_DOT_INT8(2, 5, 6);
      SLUICE_TILE_DOT_INT8(3, 5, 7);
    }
  }
  void store(std::int32_t* sums) const {
    SLUICE_TILE_BARRIER();
    SLUICE_TILE_STORE(0, sums, kPanelColumns * 4);
    SLUICE_TILE_STORE(1, sums + 16, kPanelColumns * 4);
    if (has_lower) {
      SLUICE_TILE_STORE(2, sums + 16 * kPanelColumns, kPanelColumns * 4);
      SLUICE_TILE_STORE(3, sums + 16 * kPanelColumns + 16, kPanelColumns * 4);
    }
    SLUICE_TILE_BARRIER();
  }
};

static void scale_and_store(const IntGemmArgs& args, std::int64_t row, std::int64_t rows,
                            std::int64_t panel, const float* column_scales,
                            const std::int32_t* sums) {
  const std::int64_t column = panel * kPanelColumns;
  const std::int64_t left = args.n - column;
  const std::int64_t columns = left < kPanelColumns ? left : kPanelColumns;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float row_scale = args.a_scale[row + r];
    float* out = args.out + (row + r) * args.out_stride + column;
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto sum = static_cast<float>(sums[r * kPanelColumns + c]);
      out[c] = (sum * column_scales[c]) * row_scale;
    }
  }
}

template <typename Format>
static const std::byte* int_panel(const IntGemmArgs& args, std::int64_t panel) {
  return args.w + panel * panel_bytes(Format::kFormat, args.k_steps * kIntStepK);
}

template <typename Format>
static void few_rows(const IntGemmArgs& args) {
  alignas(64) std::byte ring[Format::kDecodes ? kIntRing * kIntStepBytes : 64];
  alignas(64) std::int32_t sums[kIntSums];
  const std::int8_t* lower = args.a + args.k_steps * kIntTileBytes;
  const IntSums tiles{args.m > 16};
  configure_rows(args.m);
  for (std::int64_t panel = args.panel_begin; panel < args.panel_end; ++panel) {
    const std::byte* w = int_panel<Format>(args, panel);
    const std::byte* steps = w + kPanelScaleBytes;
    const auto decode = [&](std::int64_t s) {
      if (s < args.k_steps) {
        Format::decode_step(steps + s * Format::kStepBytes, ring + s % kIntRing * kIntStepBytes);
      }
    };
    if constexpr (Format::kDecodes) {
      for (std::int64_t s = 0; s < kIntAhead; ++s) {
        decode(s);
      }
    }
    tiles.zero();
    for (std::int64_t s = 0; s < args.k_steps; ++s) {
      const std::byte* step = steps + s * Format::kStepBytes;
      prefetch_bytes(step + kIntPrefetchBytes, Format::kStepBytes);
      if constexpr (Format::kDecodes) {
        decode(s + kIntAhead);
        SLUICE_TILE_BARRIER();
        step = ring + s % kIntRing * kIntStepBytes;
      }
      tiles.add_step(args.a + s * kIntTileBytes, lower + s * kIntTileBytes, step);
    }
    tiles.store(sums);
    scale_and_store(args, 0, args.m, panel, reinterpret_cast<const float*>(w), sums);
  }
}

struct IntPass {
  std::int64_t row;
  std::int64_t rows;
  std::int64_t panel;
  std::int64_t panels;
};

// One block of rows and all panels of the pass meet steps [step, step + count).
template <typename Format>
static void pass_block(const IntGemmArgs& args, const IntPass& pass, std::int64_t block,
                       std::int64_t step, std::int64_t count, const std::byte* decoded,
                       std::int32_t* sums) {
  const std::int64_t row = pass.row + block * kIntRows;
  const std::int64_t left = pass.row + pass.rows - row;
  const std::int64_t rows = left < kIntRows ? left : kIntRows;
  const std::int64_t blocks = (pass.rows + kIntRows - 1) / kIntRows;
  const std::int8_t* upper = args.a + int_row_offset(row, args.k_steps) + step * kIntTileBytes;
  const std::int8_t* lower = upper + args.k_steps * kIntTileBytes;
  const IntSums tiles{rows > 16};
  const bool last = step + count == args.k_steps;
  for (std::int64_t p = 0; p < pass.panels; ++p) {
    const std::byte* w = int_panel<Format>(args, pass.panel + p);
    const std::byte* here = w + kPanelScaleBytes + step * Format::kStepBytes;
    if (!last) {  // this block's share of what comes next
      const std::int64_t share = (count * Format::kStepBytes / 64 + blocks - 1) / blocks * 64;
      prefetch_bytes(here + count * Format::kStepBytes + block * share, share);
    }
    std::int32_t* sum = sums + (block * kIntPassPanels + p) * kIntSums;
    const std::byte* weights =
        Format::kDecodes ? decoded + p * kIntPassSteps * kIntStepBytes : here;
    if (step == 0) {
      tiles.zero();
    } else {
      tiles.load(sum);
    }
    for (std::int64_t s = 0; s < count; ++s) {
      tiles.add_step(upper + s * kIntTileBytes, lower + s * kIntTileBytes,
                     weights + s * kIntStepBytes);
    }
    tiles.store(sum);
    if (last) {
      scale_and_store(args, row, rows, pass.panel + p, reinterpret_cast<const float*>(w), sum);
    }
  }
}

template <typename Format>
static void int_pass(const IntGemmArgs& args, const IntPass& pass) {
  constexpr std::int64_t kDecodedBytes =
      Format::kDecodes ? kIntPassPanels * kIntPassSteps * kIntStepBytes : 64;
  alignas(64) std::byte decoded[kDecodedBytes];
  alignas(64) std::int32_t sums[kIntPassBlocks * kIntPassPanels * kIntSums];
  std::int64_t configured_rows = 0;
  for (std::int64_t step = 0; step < args.k_steps; step += kIntPassSteps) {
    const std::int64_t steps_left = args.k_steps - step;
    const std::int64_t count = steps_left < kIntPassSteps ? steps_left : kIntPassSteps;
    for (std::int64_t p = 0; Format::kDecodes && p < pass.panels; ++p) {
      const std::byte* w = int_panel<Format>(args, pass.panel + p) + kPanelScaleBytes;
      for (std::int64_t s = 0; s < count; ++s) {
        Format::decode_step(w + (step + s) * Format::kStepBytes,
                            decoded + (p * kIntPassSteps + s) * kIntStepBytes);
      }
    }
    SLUICE_TILE_BARRIER();
    for (std::int64_t block = 0; block * kIntRows < pass.rows; ++block) {
      const std::int64_t left = pass.rows - block * kIntRows;
      const std::int64_t rows = left < kIntRows ? left : kIntRows;
      if (rows != configured_rows) {
        configure_rows(rows);
        configured_rows = rows;
      }
      pass_block<Format>(args, pass, block, step, count, decoded, sums);
    }
  }
}

template <typename Format>
static void gemm_int(const IntGemmArgs& args) noexcept {
  constexpr std::int64_t kRowsMax = kIntPassBlocks * kIntRows;
  if (args.m <= kIntRows) {
    few_rows<Format>(args);
  } else {
    for (std::int64_t row = 0; row < args.m; row += kRowsMax) {
      for (std::int64_t panel = args.panel_begin; panel < args.panel_end; panel += kIntPassPanels) {
        const std::int64_t panels = args.panel_end - panel;
        int_pass<Format>(args, {.row = row,
                                .rows = args.m - row < kRowsMax ? args.m - row : kRowsMax,
                                .panel = panel,
                                .panels = panels < kIntPassPanels ? panels : kIntPassPanels});
      }
    }
  }
  SLUICE_TILE_RELEASE();
}

static void gemm_int8(const IntGemmArgs& args) noexcept {
  gemm_int<Int8Weights>(args);
}

static void gemm_int4(const IntGemmArgs& args) noexcept {
  gemm_int<Int4Weights>(args);
}
