// Attention on AMX tiles, causal and full: blocks of up to 32 query rows against blocks of 64 keys,
// a segment of keys in the L2 cache meeting all rows of a group before the next one comes. The
// order inside one row is that of ref/attention.cpp.

constexpr std::int64_t kRowBlock = 32;
constexpr std::int64_t kGroupRows = 256;
constexpr std::int64_t kGroupElements = 128 * kHeadDimMax;  // rows x width
static_assert(kAttentionRowsMax * kHeadDimMax <= kGroupElements);
static_assert(kGroupRows * kFullAttentionHeadDimMax <= kGroupElements);

constexpr float kMinusInfinity = -__builtin_inff();

// Softmax-weighted values over a run of keys, not yet divided by the sum of weights.
struct GroupState {
  float max[kGroupRows];
  float sum[kGroupRows];
  alignas(64) float values[kGroupElements];  // row stride: width
};

// What up to 32 rows have when they meet a block of keys.
struct RowBlock {
  std::int64_t rows;
  const bf16_t* q;              // [rows][width]
  const std::int64_t* visible;  // [rows]
  float* max;
  float* sum;
  float* values;  // [rows][width]

  RowBlock from(std::int64_t row, std::int64_t width) const {
    return {rows - row, q + row * width, visible + row, max + row, sum + row, values + row * width};
  }
};

struct BlockScratch {
  alignas(64) float scores[kRowBlock * kAttentionBlock];
  alignas(64) bf16_t weights[kRowBlock * kAttentionBlock];
};

// values += weights . V. Half a panel that lies beyond the head is left out.
static void add_values(const RowBlock& rows, const bf16_t* weights, const bf16_t* values,
                       std::int64_t head_dim) {
  constexpr std::int64_t kSteps = kAttentionBlock / kStepK;
  const std::int64_t width = pad32(head_dim);
  for (std::int64_t c = 0; c < head_dim; c += kPanelColumns) {
    float* v = rows.values + c;
    const bf16_t* panel = values + c / kPanelColumns * kSteps * kStepElements;
    if (head_dim - c > kPanelColumns / 2) {
      product_panel(weights, kAttentionBlock, panel, kSteps, v, v, width, rows.rows);
    } else {
      product_panel<false>(weights, kAttentionBlock, panel, kSteps, v, v, width, rows.rows);
    }
  }
}

// Scores to weights, row by row: the maximum, the sum and the values so far follow. A row whose
// maximum stays is not rescaled: that factor is exactly 1. The largest scaled score is the scaled
// largest score, since scaling rounds monotonically.
static void weigh_block(const RowBlock& rows, std::int64_t key, float scale, std::int64_t width,
                        BlockScratch& scratch) {
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    const std::int64_t seen = rows.visible[r] - key;
    V16 s[4];
    for (int i = 0; i < 4; ++i) {
      s[i] = load(scratch.scores + r * kAttentionBlock + 16 * i);
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
    bf16_t* weights = scratch.weights + r * kAttentionBlock;
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

static void reset(GroupState& state, std::int64_t rows, std::int64_t width) {
  for (std::int64_t r = 0; r < rows; ++r) {
    state.max[r] = kMinusInfinity;
    state.sum[r] = 0.0F;
  }
  for (std::int64_t i = 0; i < rows * width; i += 16) {
    store(state.values + i, zero());
  }
}

// Rows [first, rows) of `next` into `total`.
static void merge(GroupState& total, const GroupState& next, std::int64_t first, std::int64_t rows,
                  std::int64_t width) {
  for (std::int64_t r = first; r < rows; ++r) {
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

// Up to 32 rows meet the keys they see in [begin, begin + kAttentionSegment).
static void attend_segment(const AttentionArgs& args, const RowBlock& block, std::int64_t begin,
                           ProductUnit& unit) {
  const KvBlockLayout layout{args.head_dim};
  const std::int64_t width = pad32(args.head_dim);
  const std::int64_t steps = width / kStepK;
  const std::int64_t seen = block.visible[block.rows - 1];
  const std::int64_t end = seen < begin + kAttentionSegment ? seen : begin + kAttentionSegment;
  BlockScratch scratch;
  std::int64_t first = 0;  // rows come with ascending `visible`: those that see a key are a suffix
  for (std::int64_t key = begin; key < end; key += kAttentionBlock) {
    while (block.visible[first] <= key) {
      ++first;
    }
    const RowBlock rows = block.from(first, width);
    const std::int64_t index = key / kAttentionBlock;
    const std::int64_t id = args.block_table == nullptr ? index : args.block_table[index];
    const auto* keys = reinterpret_cast<const bf16_t*>(args.kv_blocks + id * args.kv_block_stride);
    unit.use(rows.rows);
    for (std::int64_t panel = 0; panel < kAttentionBlock / kPanelColumns; ++panel) {
      product_panel(rows.q, width, keys + panel * steps * kStepElements, steps, nullptr,
                    scratch.scores + panel * kPanelColumns, kAttentionBlock, rows.rows);
    }
    weigh_block(rows, key, args.scale, width, scratch);
    add_values(rows, scratch.weights, keys + layout.k_elements(), args.head_dim);
  }
}

// The softmax-weighted values of all rows of args, whose `out` nobody looks at.
static void attend(const AttentionArgs& args, GroupState& total) {
  const std::int64_t width = pad32(args.head_dim);
  GroupState segment;
  ProductUnit unit;
  reset(total, args.rows, width);
  std::int64_t first = 0;
  for (std::int64_t begin = 0; begin < args.visible[args.rows - 1]; begin += kAttentionSegment) {
    while (args.visible[first] <= begin) {
      ++first;
    }
    GroupState& state = begin == 0 ? total : segment;
    if (begin != 0) {
      reset(segment, args.rows, width);
    }
    const RowBlock all{.rows = args.rows,
                       .q = args.q,
                       .visible = args.visible,
                       .max = state.max,
                       .sum = state.sum,
                       .values = state.values};
    for (std::int64_t row = first; row < args.rows; row += kRowBlock) {
      RowBlock block = all.from(row, width);
      block.rows = block.rows < kRowBlock ? block.rows : kRowBlock;
      attend_segment(args, block, begin, unit);
    }
    if (begin != 0) {
      merge(total, segment, first, args.rows, width);
    }
  }
}

static void attention(const AttentionArgs& args) noexcept {
  const std::int64_t width = pad32(args.head_dim);
  GroupState total;
  attend(args, total);
  for (std::int64_t r = 0; r < args.rows; ++r) {
    float* out = args.out + args.out_offset[r];
    const V16 sum = set1(total.sum[r]);
    for (std::int64_t c = 0; c < args.head_dim; c += 16) {
      store_first(out + c, div(load(total.values + r * width + c), sum), args.head_dim - c);
    }
  }
}

static void full_attention(const FullAttentionArgs& args) noexcept {
  const std::int64_t width = pad32(args.head_dim);
  GroupState total;
  std::int64_t visible[kGroupRows];
  for (std::int64_t& seen : visible) {
    seen = args.keys;
  }
  for (std::int64_t row = 0; row < args.rows; row += kGroupRows) {
    const std::int64_t rows = args.rows - row < kGroupRows ? args.rows - row : kGroupRows;
    attend({.q = args.q + row * width,
            .visible = visible,
            .out = nullptr,
            .out_offset = nullptr,
            .rows = rows,
            .head_dim = args.head_dim,
            .kv_blocks = reinterpret_cast<const std::byte*>(args.kv),
            .kv_block_stride = KvBlockLayout{args.head_dim}.bytes(1),
            .block_table = nullptr,
            .scale = args.scale},
           total);
    for (std::int64_t r = 0; r < rows; ++r) {
      const V16 sum = set1(total.sum[r]);
      bf16_t* out = args.out + (row + r) * args.out_stride;
      for (std::int64_t c = 0; c < args.head_dim; c += 16) {
        store_first_bf16(out + c, div(load(total.values + r * width + c), sum), args.head_dim - c);
      }
    }
  }
}
