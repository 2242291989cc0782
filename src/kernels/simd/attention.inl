// Attention of query rows against one KV head, block by block, as many rows at a time as stay in
// the L1 cache (ref/attention.cpp says what it computes, row by row).

constexpr std::int64_t kGroupRows = 16;

struct AttentionState {
  float max[kGroupRows];
  float sum[kGroupRows];
  alignas(64) float values[kGroupRows * kHeadDimMax];
};

constexpr float kMinusInfinity = -__builtin_inff();

// Scores of one row and one block -> weights of bf16 value, updated maximum and sum.
// Returns the factor by which the values so far shrink.
static float softmax_block(const float* scores, std::int64_t seen, float scale, float* weights,
                           float& max_so_far, float& sum_so_far) {
  V16 s[4];
  V16 lane_max = set1(max_so_far);
  for (int i = 0; i < 4; ++i) {
    s[i] = keep_first(mul(set1(scale), load(scores + 16 * i)), seen - 16 * i, set1(kMinusInfinity));
    lane_max = max(s[i], lane_max);
  }
  const float new_max = fold_max(lane_max);
  for (int i = 0; i < 4; ++i) {
    s[i] = exp_f32(sub(s[i], set1(new_max)));
    store(weights + 16 * i, to_bf16_and_back(s[i]));
  }
  const float rescale = kernels::exp_f32(max_so_far - new_max);
  sum_so_far = __builtin_fmaf(sum_so_far, rescale, fold_add(add(add(s[0], s[1]), add(s[2], s[3]))));
  max_so_far = new_max;
  return rescale;
}

static void attend_block(const AttentionArgs& args, const float* q, std::int64_t first_row,
                         std::int64_t key, AttentionState& state) {
  const KvBlockLayout layout{args.head_dim};
  const std::int64_t width = pad32(args.head_dim);
  const std::int64_t steps = width / kStepK;
  const std::int64_t rows = args.rows - first_row;
  const std::int64_t index = key / kAttentionBlock;
  const std::int64_t id = args.block_table == nullptr ? index : args.block_table[index];
  const auto* keys = reinterpret_cast<const bf16_t*>(args.kv_blocks + id * args.kv_block_stride);
  const bf16_t* values = keys + layout.k_elements();

  alignas(64) float scores[kGroupRows * kAttentionBlock];
  alignas(64) float weights[kGroupRows * kAttentionBlock];
  for (std::int64_t panel = 0; panel < kAttentionBlock / kPanelColumns; ++panel) {
    product_panel(q + first_row * width, width, keys + panel * steps * kStepElements, steps,
                  nullptr, scores + panel * kPanelColumns, kAttentionBlock, rows);
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t row = first_row + r;
    const float rescale =
        softmax_block(scores + r * kAttentionBlock, args.visible[row] - key, args.scale,
                      weights + r * kAttentionBlock, state.max[row], state.sum[row]);
    float* v = state.values + row * width;
    for (std::int64_t c = 0; c < width; c += 16) {
      store(v + c, mul(load(v + c), set1(rescale)));
    }
  }
  constexpr std::int64_t kValueSteps = kAttentionBlock / kStepK;
  for (std::int64_t panel = 0; panel < steps; ++panel) {
    float* v = state.values + first_row * width + panel * kPanelColumns;
    product_panel(weights, kAttentionBlock, values + panel * kValueSteps * kStepElements,
                  kValueSteps, v, v, width, rows);
  }
}

static void reset_state(AttentionState& state, std::int64_t rows, std::int64_t width) {
  for (std::int64_t r = 0; r < rows; ++r) {
    state.max[r] = kMinusInfinity;
    state.sum[r] = 0.0F;
  }
  for (std::int64_t i = 0; i < rows * width; i += 16) {
    store(state.values + i, zero());
  }
}

static void merge_segment(AttentionState& total, const AttentionState& next, std::int64_t row,
                          std::int64_t width) {
  const float new_max = next.max[row] > total.max[row] ? next.max[row] : total.max[row];
  const float a = kernels::exp_f32(total.max[row] - new_max);
  const float b = kernels::exp_f32(next.max[row] - new_max);
  total.max[row] = new_max;
  total.sum[row] = __builtin_fmaf(next.sum[row], b, total.sum[row] * a);
  float* v = total.values + row * width;
  const float* w = next.values + row * width;
  for (std::int64_t c = 0; c < width; c += 16) {
    store(v + c, fma(load(w + c), set1(b), mul(load(v + c), set1(a))));
  }
}

static void attend_group(const AttentionArgs& args) {
  const std::int64_t width = pad32(args.head_dim);
  alignas(64) float q[kGroupRows * kHeadDimMax];
  widen(args.q, args.rows * width, q);
  AttentionState total;
  AttentionState segment;
  reset_state(total, args.rows, width);

  // Rows come with ascending `visible`, so those that see a key are a suffix.
  std::int64_t first_row = 0;
  const std::int64_t key_end = args.visible[args.rows - 1];
  for (std::int64_t begin = 0; begin < key_end; begin += kAttentionSegment) {
    AttentionState& state = begin == 0 ? total : segment;
    if (begin != 0) {
      reset_state(state, args.rows, width);
    }
    std::int64_t segment_first = first_row;
    while (args.visible[segment_first] <= begin) {
      ++segment_first;
    }
    first_row = segment_first;
    const std::int64_t end =
        key_end - begin < kAttentionSegment ? key_end : begin + kAttentionSegment;
    for (std::int64_t key = begin; key < end; key += kAttentionBlock) {
      while (args.visible[first_row] <= key) {
        ++first_row;
      }
      attend_block(args, q, first_row, key, state);
    }
    if (begin != 0) {
      for (std::int64_t row = segment_first; row < args.rows; ++row) {
        merge_segment(total, segment, row, width);
      }
    }
  }
  for (std::int64_t row = 0; row < args.rows; ++row) {
    float* out = args.out + args.out_offset[row];
    const V16 sum = set1(total.sum[row]);
    for (std::int64_t c = 0; c < args.head_dim; c += 16) {
      store_first(out + c, div(load(total.values + row * width + c), sum), args.head_dim - c);
    }
  }
}

static void attention(const AttentionArgs& args) noexcept {
  AttentionArgs group = args;
  for (std::int64_t row = 0; row < args.rows; row += kGroupRows) {
    group.q = args.q + row * pad32(args.head_dim);
    group.visible = args.visible + row;
    group.out_offset = args.out_offset + row;
    group.rows = args.rows - row < kGroupRows ? args.rows - row : kGroupRows;
    attend_group(group);
  }
}
