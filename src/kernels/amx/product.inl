// Products on AMX tiles, the same for weights of every format: 32 rows x 32 columns at a time in
// four tiles of sums. TDPBF16PS is the canonical step by definition (docs/NUMERICS.md), sums of
// TDPBSSD are exact, and sums that leave their tile come back as they were: neither the number of
// rows nor the runs below show in a result. The SLUICE_TILE_* macros are the instructions, or their
// software model in the tests of machines without AMX.
//
// Up to 32 rows: every panel is one stream from memory. More rows: a run is 16 steps of up to 8
// panels. Its weights and the sums of 512 rows lie in the L2 cache; blocks of 32 rows come into the
// L1 cache one after the other and meet all panels of the run, whose tiles pass by the L1 cache.
// Meanwhile the weights of the next run come from memory.

constexpr std::int64_t kTileRows = kRowsOfTile;
constexpr std::int64_t kTileBytes = 1024;  // 16 rows of activations; half a step of weights
constexpr std::int64_t kTileStepBytes = 2 * kTileBytes;
constexpr std::int64_t kBlockRows = 2 * kTileRows;
constexpr std::int64_t kBlockSums = kBlockRows * kPanelColumns;
constexpr std::int64_t kPassRows = 512;
constexpr std::int64_t kRunPanels = 8;
constexpr std::int64_t kRunSteps = 16;
constexpr std::int64_t kPassSums = kPassRows * kRunPanels * kPanelColumns;

// Rows and the panel that meet in four tiles.
struct Block {
  std::int64_t row;
  std::int64_t rows;  // 1 .. 32
  std::int64_t panel;
};

// Tiles for products of 1 to 32 rows, from the first use() to the end of the object.
class ProductUnit {
 public:
  ProductUnit() = default;
  explicit ProductUnit(std::int64_t rows) { use(rows); }
  ~ProductUnit() {
    if (rows_ != 0) {
      SLUICE_TILE_RELEASE();
    }
  }
  ProductUnit(const ProductUnit&) = delete;
  ProductUnit& operator=(const ProductUnit&) = delete;

  void use(std::int64_t rows) {
    if (rows == rows_) {
      return;
    }
    rows_ = rows;
    const std::int64_t upper = rows < kTileRows ? rows : kTileRows;
    const TileConfig config =
        product_config(static_cast<int>(upper), static_cast<int>(rows - upper));
    SLUICE_TILE_BARRIER();
    SLUICE_TILE_CONFIGURE(&config);
    SLUICE_TILE_BARRIER();
  }

 private:
  std::int64_t rows_ = 0;
};

// Whether all rows and columns of the tiles of sums are those of the result.
template <typename Args>
static bool fills_tiles(const Args& args, const Block& block) {
  return (block.panel + 1) * kPanelColumns <= args.n &&
         (block.rows % kTileRows == 0 || args.m < kTileRows);
}

// The sums of a block in tiles 0 to 3; in memory [32][stride].
struct SumTiles {
  bool has_lower;  // more than 16 rows

  void zero() const {
    SLUICE_TILE_ZERO(0);
    SLUICE_TILE_ZERO(1);
    if (has_lower) {
      SLUICE_TILE_ZERO(2);
      SLUICE_TILE_ZERO(3);
    }
  }
  template <typename Sum>
  void load(const Sum* sums) const {
    constexpr std::int64_t kStride = kPanelColumns * 4;
    SLUICE_TILE_LOAD(0, sums, kStride);
    SLUICE_TILE_LOAD(1, sums + 16, kStride);
    if (has_lower) {
      SLUICE_TILE_LOAD(2, sums + kTileRows * kPanelColumns, kStride);
      SLUICE_TILE_LOAD(3, sums + kTileRows * kPanelColumns + 16, kStride);
    }
  }
  template <typename Sum>
  void store(Sum* sums, std::int64_t stride) const {
    SLUICE_TILE_BARRIER();
    SLUICE_TILE_STORE(0, sums, stride * 4);
    SLUICE_TILE_STORE(1, sums + 16, stride * 4);
    if (has_lower) {
      SLUICE_TILE_STORE(2, sums + kTileRows * stride, stride * 4);
      SLUICE_TILE_STORE(3, sums + kTileRows * stride + 16, stride * 4);
    }
    SLUICE_TILE_BARRIER();
  }
  // Tiles 6 and 7 have the weights of a step.
  template <typename Product>
  void add_step(const std::byte* upper, const std::byte* lower) const {
    SLUICE_TILE_LOAD(4, upper, 64);
    if constexpr (Product::kIntegers) {
      SLUICE_TILE_DOT_INT8(0, 4, 6);
      SLUICE_TILE_DOT_INT8(1, 4, 7);
    } else {
      SLUICE_TILE_DOT(0, 4, 6);
      SLUICE_TILE_DOT(1, 4, 7);
    }
    if (!has_lower) {
      return;
    }
    SLUICE_TILE_LOAD(5, lower, 64);
    if constexpr (Product::kIntegers) {
      SLUICE_TILE_DOT_INT8(2, 5, 6);
      SLUICE_TILE_DOT_INT8(3, 5, 7);
    } else {
      SLUICE_TILE_DOT(2, 5, 6);
      SLUICE_TILE_DOT(3, 5, 7);
    }
  }
  // The end of a slice of K. sums: where slice 3 goes to another place than slice 2, `third`.
  template <typename Product>
  void finish(const typename Product::Args& args, const Block& block, std::int64_t slice,
              typename Product::Sum* sums, const typename Product::Sum* third) const {
    if constexpr (!Product::kIntegers) {
      if (slice == 0 && fills_tiles(args, block)) {
        store(args.out + block.row * args.out_stride + block.panel * kPanelColumns,
              args.out_stride);
        return;
      }
    }
    store(sums, kPanelColumns);
    Product::finish(args, block, slice, sums, third);
  }
};

// Steps [step, step + count) of panels [panel, panel + panels).
struct Run {
  std::int64_t panel;
  std::int64_t panels;  // 0: there is no such run
  std::int64_t step;
  std::int64_t count;
};

// The runs of a product: some panels at the first steps, at the next steps, to the end; then the
// next panels. Runs end with their slice of K.
struct RunOrder {
  std::int64_t k_steps;
  std::int64_t slice_steps;
  std::int64_t panel_begin;
  std::int64_t panel_end;
  std::int64_t panels_at_once;

  Run first() const { return at(panel_begin, 0); }
  Run after(const Run& run) const {
    const std::int64_t step = run.step + run.count;
    return step < k_steps ? at(run.panel, step) : at(run.panel + run.panels, 0);
  }
  bool begins_slice(const Run& run) const { return run.step % slice_steps == 0; }
  bool ends_slice(const Run& run) const { return (run.step + run.count) % slice_steps == 0; }

 private:
  Run at(std::int64_t panel, std::int64_t step) const {
    const std::int64_t panels = panel_end - panel;
    const std::int64_t steps = slice_steps - step % slice_steps;
    return {.panel = panel,
            .panels = panels < panels_at_once ? panels : panels_at_once,
            .step = step,
            .count = steps < kRunSteps ? steps : kRunSteps};
  }
};

// The weights of a run as they are stored, in parts that are looked at one after the other.
class StoredParts {
 public:
  StoredParts() = default;
  StoredParts(const std::byte* first, std::int64_t panel_stride, std::int64_t per_panel,
              std::int64_t part_bytes)
      : part_(first),
        part_bytes_(part_bytes),
        per_panel_(per_panel),
        to_next_panel_(panel_stride - (per_panel - 1) * part_bytes) {}

  const std::byte* take() {
    const std::byte* part = part_;
    const bool last = ++taken_ == per_panel_;
    part_ += last ? to_next_panel_ : part_bytes_;
    taken_ = last ? 0 : taken_;
    return part;
  }

 private:
  const std::byte* part_ = nullptr;
  std::int64_t part_bytes_ = 0;
  std::int64_t per_panel_ = 0;
  std::int64_t to_next_panel_ = 0;
  std::int64_t taken_ = 0;
};

// The weights of the coming runs: fetched and, where the format is not that of the tiles, decoded,
// a little beside every step that is multiplied.
template <typename Product>
class ComingWeights {
 public:
  using Args = typename Product::Args;

  ComingWeights(const Args& args, const RunOrder& order) : args_(args), order_(order) {
    prepare(order.first());
    while (Product::kDecodes && parts_left_ > 0) {
      prepare_part();
    }
  }

  // Panel p of the run is at the returned place + p * panel_stride(), in tiles. The run will be
  // multiplied in `turns` calls of help().
  const std::byte* begin(const Run& run, std::int64_t turns) {
    SLUICE_TILE_BARRIER();
    const std::byte* weights = Product::kDecodes ? decoded_[odd_ ? 1 : 0] : stored(run);
    odd_ = !odd_;
    prepare(order_.after(run));
    turns_ = turns;
    parts_ = parts_left_;
    credit_ = 0;
    return weights;
  }
  std::int64_t panel_stride() const {
    return Product::kDecodes ? kRunSteps * kTileStepBytes : Product::panel_stride(args_);
  }

  void help() {
    for (credit_ += parts_; credit_ >= turns_; credit_ -= turns_) {
      prepare_part();
    }
  }

 private:
  // A part is as much as takes little time: two cache lines to fetch, or a step to decode.
  static constexpr std::int64_t kStepParts = Product::kDecodes ? 1 : 16;
  static constexpr std::int64_t kPartBytes = Product::kStepBytes / kStepParts;

  const std::byte* stored(const Run& run) const {
    return Product::steps(args_, run.panel) + run.step * Product::kStepBytes;
  }
  StoredParts parts_of(const Run& run) const {
    return {stored(run), Product::panel_stride(args_), run.count * kStepParts, kPartBytes};
  }

  void prepare(const Run& run) {
    parts_left_ = run.panels * run.count * kStepParts;
    fetched_ = parts_of(Product::kDecodes ? order_.after(run) : run);
    if constexpr (Product::kDecodes) {  // decoded now, so fetched before
      decoding_ = run;
      panel_ = run.panel;
      step_ = run.step;
      tiles_ = decoded_[odd_ ? 1 : 0];
    }
  }

  void prepare_part() {
    const std::byte* part = fetched_.take();
    for (std::int64_t i = 0; i < kPartBytes; i += 64) {
      SLUICE_TILE_PREFETCH_L2(part + i);
    }
    if constexpr (Product::kDecodes) {
      Product::decode_step(args_, panel_, step_, tiles_);
      const bool last = ++step_ == decoding_.step + decoding_.count;
      tiles_ += last ? (kRunSteps - decoding_.count + 1) * kTileStepBytes : kTileStepBytes;
      step_ = last ? decoding_.step : step_;
      panel_ += last ? 1 : 0;
    }
    --parts_left_;
  }

  const Args& args_;
  const RunOrder& order_;
  StoredParts fetched_;
  Run decoding_ = {};
  std::int64_t panel_ = 0;  // the next step to be decoded, and where to
  std::int64_t step_ = 0;
  std::byte* tiles_ = nullptr;
  std::int64_t turns_ = 0;
  std::int64_t parts_ = 0;
  std::int64_t parts_left_ = 0;
  std::int64_t credit_ = 0;
  bool odd_ = false;
  alignas(
      64) std::byte decoded_[2][Product::kDecodes ? kRunPanels * kRunSteps * kTileStepBytes : 64];
};

// Beside step s of a block and panel: a share of the sums that are loaded next, and of the result
// (if not null), into the L1 cache. The stores of a tile would wait for 16 cache lines each.
template <typename Sum>
static void fetch_sums(const Sum* next, const float* out, std::int64_t out_stride, std::int64_t s) {
  constexpr std::int64_t kShare = kBlockSums / kRunSteps;
  constexpr std::int64_t kRowsShare = kBlockRows / kRunSteps;
  for (std::int64_t i = 0; i < kShare; i += 16) {
    SLUICE_TILE_PREFETCH(next + s * kShare + i);
  }
  for (std::int64_t r = 0; out != nullptr && r < kRowsShare; ++r) {
    const float* row = out + (s * kRowsShare + r) * out_stride;
    SLUICE_TILE_PREFETCH_WRITE(row);
    SLUICE_TILE_PREFETCH_WRITE(row + 16);
  }
}

// One run of a pass: rows [row, row + rows).
template <typename Product>
static void multiply_run(const typename Product::Args& args, std::int64_t row, std::int64_t rows,
                         const RunOrder& order, const Run& run, ComingWeights<Product>& coming,
                         typename Product::Sum (*sums)[kPassSums]) {
  const std::int64_t slice = run.step / order.slice_steps;
  const bool ends_slice = order.ends_slice(run);
  const std::int64_t tile_stride = args.k_steps * kTileBytes;
  const auto* upper = reinterpret_cast<const std::byte*>(args.a) + row / kTileRows * tile_stride +
                      run.step * kTileBytes;
  const std::int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  const std::byte* weights = coming.begin(run, blocks * run.panels * run.count);
  std::int64_t at = 0;
  for (std::int64_t b = 0; b < blocks; ++b, upper += 2 * tile_stride) {
    const std::int64_t left = rows - b * kBlockRows;
    Block block{.row = row + b * kBlockRows,
                .rows = left < kBlockRows ? left : kBlockRows,
                .panel = run.panel};
    const SumTiles tiles{block.rows > kTileRows};
    for (std::int64_t p = 0; p < run.panels; ++p, ++block.panel, at += kBlockSums) {
      auto* sum = sums[slice / 3] + at;  // that of slice 2 stays until 3 is there
      const float* out = ends_slice
                             ? args.out + block.row * args.out_stride + block.panel * kPanelColumns
                             : nullptr;
      if (order.begins_slice(run)) {
        tiles.zero();
      } else {
        tiles.load(sum);
      }
      const std::byte* panel = weights + p * coming.panel_stride();
      for (std::int64_t s = 0; s < run.count; ++s) {
        coming.help();
        fetch_sums(sum + kBlockSums, out, args.out_stride, s);
        SLUICE_TILE_LOAD_PASSING(6, panel + s * kTileStepBytes, 64);
        SLUICE_TILE_LOAD_PASSING(7, panel + s * kTileStepBytes + kTileBytes, 64);
        tiles.add_step<Product>(upper + s * kTileBytes, upper + tile_stride + s * kTileBytes);
      }
      if (ends_slice) {
        tiles.finish<Product>(args, block, slice, sum, sums[0] + at);
      } else {
        tiles.store(sum, kPanelColumns);
      }
    }
  }
}

template <typename Product>
static void multiply_rows(const typename Product::Args& args, std::int64_t row, std::int64_t rows) {
  alignas(64) typename Product::Sum sums[Product::kSumsKept][kPassSums];
  const std::int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  const RunOrder order{.k_steps = args.k_steps,
                       .slice_steps = args.k_steps / Product::slices(args),
                       .panel_begin = args.panel_begin,
                       .panel_end = args.panel_end,
                       .panels_at_once = blocks < kRunPanels ? blocks : kRunPanels};
  ComingWeights<Product> coming(args, order);
  for (Run run = order.first(); run.panels > 0; run = order.after(run)) {
    multiply_run<Product>(args, row, rows, order, run, coming, sums);
  }
}

// The weights that are wanted soon, from memory into the L2 cache; those to be decoded from there
// into the L1 cache, which has too few misses at a time for memory.
template <typename Product>
static void fetch_ahead(const std::byte* step) {
  constexpr std::int64_t kFarBytes = 16384;
  constexpr std::int64_t kNearBytes = 2048;
  for (std::int64_t i = 0; i < Product::kStepBytes; i += 64) {
    SLUICE_TILE_PREFETCH_L2(step + kFarBytes + i);
    if constexpr (Product::kDecodes) {
      SLUICE_TILE_PREFETCH(step + kNearBytes + i);
    }
  }
}

// Up to 32 rows. Weights are decoded a few steps before they are used.
template <typename Product>
static void multiply_few(const typename Product::Args& args) {
  constexpr std::int64_t kAhead = 2;
  constexpr std::int64_t kRing = 4;
  alignas(64) std::byte ring[Product::kDecodes ? kRing * kTileStepBytes : 64];
  alignas(64) typename Product::Sum sums[Product::kSumsKept][kBlockSums];
  const auto* upper = reinterpret_cast<const std::byte*>(args.a);
  const std::byte* lower = upper + args.k_steps * kTileBytes;
  const std::int64_t slice_steps = args.k_steps / Product::slices(args);
  const SumTiles tiles{args.m > kTileRows};
  for (std::int64_t panel = args.panel_begin; panel < args.panel_end; ++panel) {
    const std::byte* steps = Product::steps(args, panel);
    const auto decode = [&](std::int64_t s) {
      if constexpr (Product::kDecodes) {
        if (s < args.k_steps) {
          Product::decode_step(args, panel, s, ring + s % kRing * kTileStepBytes);
        }
      }
    };
    for (std::int64_t s = 0; s < kAhead; ++s) {
      decode(s);
    }
    for (std::int64_t slice = 0; slice < Product::slices(args); ++slice) {
      tiles.zero();
      for (std::int64_t s = slice * slice_steps; s < (slice + 1) * slice_steps; ++s) {
        const std::byte* step = steps + s * Product::kStepBytes;
        fetch_ahead<Product>(step);
        if constexpr (Product::kDecodes) {
          decode(s + kAhead);
          SLUICE_TILE_BARRIER();
          step = ring + s % kRing * kTileStepBytes;
        }
        SLUICE_TILE_LOAD(6, step, 64);
        SLUICE_TILE_LOAD(7, step + kTileBytes, 64);
        tiles.add_step<Product>(upper + s * kTileBytes, lower + s * kTileBytes);
      }
      tiles.finish<Product>(args, {.row = 0, .rows = args.m, .panel = panel}, slice,
                            sums[slice / 3], sums[0]);
    }
  }
}

template <typename Product>
static void multiply(const typename Product::Args& args) {
  // All tiles have 16 rows unless there are fewer altogether.
  const ProductUnit unit(args.m > kTileRows ? kBlockRows : args.m);
  if (args.m <= kBlockRows) {
    multiply_few<Product>(args);
  } else {
    for (std::int64_t row = 0; row < args.m; row += kPassRows) {
      multiply_rows<Product>(args, row, args.m - row < kPassRows ? args.m - row : kPassRows);
    }
  }
}
