// Full attention on AMX tiles: blocks of 32 rows against blocks of 64 keys, the segment of keys in
// the L2 cache meeting kGroupRows rows before the next one comes. The order inside one row is that
// of ref/attention.cpp.

constexpr std::int64_t kGroupRows = 256;
constexpr std::int64_t kRowBlock = 32;

// Softmax-weighted values over a run of keys, not yet divided by the sum of weights.
struct GroupState {
  float max[kGroupRows];
  float sum[kGroupRows];
  alignas(64) float values[kGroupRows * kFullAttentionHeadDimMax];  // row stride: width
};

// What one block of rows needs while it meets one block of keys.
struct RowBlock {
  const bf16_t* q;  // [32][width]
  float* max;       // [32]
  float* sum;
  float* values;  // [32][width]
  alignas(64) float scores[kRowBlock * kAttentionBlock];
  alignas(64) bf16_t weights[kRowBlock * kAttentionBlock];
};

constexpr float kMinusInfinity = -__builtin_inff();

static void score_block(RowBlock& rows, const bf16_t* keys, std::int64_t width) {
  const std::int64_t steps = width / kStepK;
  const bf16_t* lower = rows.q + kTileRows * width;
  float* lower_scores = rows.scores + kTileRows * kAttentionBlock;
  SLUICE_TILE_BARRIER();
  for (std::int64_t panel = 0; panel < kAttentionBlock / kPanelColumns; ++panel) {
    const bf16_t* k = keys + panel * steps * kStepElements;
    const std::int64_t column = panel * kPanelColumns;
    SLUICE_TILE_ZERO(0);
    SLUICE_TILE_ZERO(1);
    SLUICE_TILE_ZERO(2);
    SLUICE_TILE_ZERO(3);
    for (std::int64_t s = 0; s < steps; ++s) {
      SLUICE_TILE_LOAD(4, rows.q + s * kStepK, width * 2);
      SLUICE_TILE_LOAD(6, k + s * kStepElements, 64);
      SLUICE_TILE_LOAD(7, k + s * kStepElements + kTileElements, 64);
      SLUICE_TILE_DOT(0, 4, 6);
      SLUICE_TILE_DOT(1, 4, 7);
      SLUICE_TILE_LOAD(5, lower + s * kStepK, width * 2);
      SLUICE_TILE_DOT(2, 5, 6);
      SLUICE_TILE_DOT(3, 5, 7);
    }
    SLUICE_TILE_STORE(0, rows.scores + column, kAttentionBlock * 4);
    SLUICE_TILE_STORE(1, rows.scores + column + 16, kAttentionBlock * 4);
    SLUICE_TILE_STORE(2, lower_scores + column, kAttentionBlock * 4);
    SLUICE_TILE_STORE(3, lower_scores + column + 16, kAttentionBlock * 4);
  }
  SLUICE_TILE_BARRIER();
}

// values += weights . V; halves: of 16 channels, those beyond the head are left out.
static void add_values(RowBlock& rows, const bf16_t* values, std::int64_t width,
                       std::int64_t halves) {
  const bf16_t* lower = rows.weights + kTileRows * kAttentionBlock;
  SLUICE_TILE_BARRIER();
  for (std::int64_t half = 0; half < halves; half += 2) {
    const bool both = half + 1 < halves;
    float* v = rows.values + half * 16;
    float* lower_v = v + kTileRows * width;
    SLUICE_TILE_LOAD(0, v, width * 4);
    SLUICE_TILE_LOAD(2, lower_v, width * 4);
    if (both) {
      SLUICE_TILE_LOAD(1, v + 16, width * 4);
      SLUICE_TILE_LOAD(3, lower_v + 16, width * 4);
    }
    for (std::int64_t s = 0; s < kAttentionBlock / kStepK; ++s) {
      const bf16_t* w = values + (half / 2 * (kAttentionBlock / kStepK) + s) * kStepElements;
      SLUICE_TILE_LOAD(4, rows.weights + s * kStepK, kAttentionBlock * 2);
      SLUICE_TILE_LOAD(5, lower + s * kStepK, kAttentionBlock * 2);
      SLUICE_TILE_LOAD(6, w, 64);
      SLUICE_TILE_DOT(0, 4, 6);
      SLUICE_TILE_DOT(2, 5, 6);
      if (both) {
        SLUICE_TILE_LOAD(7, w + kTileElements, 64);
        SLUICE_TILE_DOT(1, 4, 7);
        SLUICE_TILE_DOT(3, 5, 7);
      }
    }
    SLUICE_TILE_STORE(0, v, width * 4);
    SLUICE_TILE_STORE(2, lower_v, width * 4);
    if (both) {
      SLUICE_TILE_STORE(1, v + 16, width * 4);
      SLUICE_TILE_STORE(3, lower_v + 16, width * 4);
    }
  }
  SLUICE_TILE_BARRIER();
}

// Scores to weights, row by row: the maximum, the sum and the values so far follow. `seen` keys of
// the block exist. A row whose maximum stays is not rescaled: that factor is exactly 1. The largest
// scaled score is the scaled largest score, since scaling rounds monotonically.
static void weigh_block(RowBlock& rows, std::int64_t seen, float scale, std::int64_t width) {
  for (std::int64_t r = 0; r < kRowBlock; ++r) {
    V16 s[4];
    for (int i = 0; i < 4; ++i) {
      s[i] = load(rows.scores + r * kAttentionBlock + 16 * i);
      if (seen < kAttentionBlock) {
        s[i] = keep_first(s[i], seen - 16 * i, set1(kMinusInfinity));
      }
    }
    const float block_max = scale * fold_max(max(max(s[0], s[1]), max(s[2], s[3])));
    const float old_max = rows.max[r];
    const float new_max = block_max > old_max ? block_max : old_max;
    for (int i = 0; i < 4; ++i) {
      s[i] = exp_f32(sub(mul(set1(scale), s[i]), set1(new_max)));
    }
    bf16_t* weights = rows.weights + r * kAttentionBlock;
    store_bf16_pair(weights, s[0], s[1]);
    store_bf16_pair(weights + 32, s[2], s[3]);
    const float sum = fold_add(add(add(s[0], s[1]), add(s[2], s[3])));
    if (new_max == old_max) {
      rows.sum[r] = rows.sum[r] + sum;
      continue;
    }
    const float rescale = kernels::exp_f32(old_max - new_max);
    rows.sum[r] = __builtin_fmaf(rows.sum[r], rescale, sum);
    rows.max[r] = new_max;
    float* v = rows.values + r * width;
    for (std::int64_t c = 0; c < width; c += 16) {
      store(v + c, mul(load(v + c), set1(rescale)));
    }
  }
}

static void reset(GroupState& state, std::int64_t width) {
  for (std::int64_t r = 0; r < kGroupRows; ++r) {
    state.max[r] = kMinusInfinity;
    state.sum[r] = 0.0F;
  }
  for (std::int64_t i = 0; i < kGroupRows * width; i += 16) {
    store(state.values + i, zero());
  }
}

static void merge(GroupState& total, const GroupState& next, std::int64_t rows,
                  std::int64_t width) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float new_max = next.max[r] > total.max[r] ? next.max[r] : total.max[r];
    const float a = kernels::exp_f32(total.max[r] - new_max);
    const float b = kernels::exp_f32(next.max[r] - new_max);
    total.max[r] = new_max;
    total.sum[r] = __builtin_fmaf(next.sum[r], b, total.sum[r] * a);
    float* v = total.values + r * width;
    const float* w = next.values + r * width;
    for (std::int64_t c = 0; c < width; c += 16) {
      store(v + c, fma(load(w + c), set1(b), mul(load(v + c), set1(a))));
    }
  }
}

// Keys [begin, end) of one segment meet `count` rows from `row` on.
static void attend_segment(const FullAttentionArgs& args, std::int64_t row, std::int64_t count,
                           std::int64_t begin, std::int64_t end, GroupState& state) {
  const KvBlockLayout layout{args.head_dim};
  const std::int64_t width = pad32(args.head_dim);
  const std::int64_t halves = (args.head_dim + 15) / 16;
  alignas(64) bf16_t last_q[kRowBlock * kFullAttentionHeadDimMax] = {};
  RowBlock rows;
  for (std::int64_t r = 0; r < count; r += kRowBlock) {
    rows.q = args.q + (row + r) * width;
    if (count - r < kRowBlock) {  // rows that do not exist are zeros; nobody reads their results
      __builtin_memcpy(last_q, rows.q, static_cast<std::size_t>((count - r) * width) * 2);
      rows.q = last_q;
    }
    rows.max = state.max + r;
    rows.sum = state.sum + r;
    rows.values = state.values + r * width;
    for (std::int64_t key = begin; key < end; key += kAttentionBlock) {
      const bf16_t* keys = args.kv + key / kAttentionBlock * layout.head_elements();
      score_block(rows, keys, width);
      weigh_block(rows, end - key, args.scale, width);
      add_values(rows, keys + layout.k_elements(), width, halves);
    }
  }
}

static void full_attention(const FullAttentionArgs& args) noexcept {
  const std::int64_t width = pad32(args.head_dim);
  GroupState total;
  GroupState segment;
  const TileConfig config = product_config(kTileRows, kTileRows);
  SLUICE_TILE_BARRIER();
  SLUICE_TILE_CONFIGURE(&config);
  for (std::int64_t row = 0; row < args.rows; row += kGroupRows) {
    const std::int64_t count = args.rows - row < kGroupRows ? args.rows - row : kGroupRows;
    for (std::int64_t begin = 0; begin < args.keys; begin += kAttentionSegment) {
      const std::int64_t left = args.keys - begin;
      const std::int64_t end = left < kAttentionSegment ? args.keys : begin + kAttentionSegment;
      GroupState& state = begin == 0 ? total : segment;
      reset(state, width);
      attend_segment(args, row, count, begin, end, state);
      if (begin != 0) {
        merge(total, segment, count, width);
      }
    }
    for (std::int64_t r = 0; r < count; ++r) {
      const V16 sum = set1(total.sum[r]);
      bf16_t* out = args.out + (row + r) * args.out_stride;
      for (std::int64_t c = 0; c < args.head_dim; c += 16) {
        store_first_bf16(out + c, div(load(total.values + r * width + c), sum), args.head_dim - c);
      }
    }
  }
  SLUICE_TILE_RELEASE();
}
