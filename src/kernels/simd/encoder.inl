// What only the vision encoder computes (ref/encoder.cpp says what).

static void embed_patch(const EmbedPatchArgs& args) noexcept {
  for (std::int64_t i = 0; i < args.size; i += 16) {
    const std::int64_t left = args.size - i;
    V16 position = zero();
    for (int tap = 0; tap < 4; ++tap) {
      position = fma(set1(args.weights[tap]), load_first_bf16(args.taps[tap] + i, left), position);
    }
    const V16 x =
        fma(load_first(args.x + i, left), set1(args.scale), load_first(args.bias + i, left));
    store_first(args.x + i, add(x, position), left);
  }
}

static void layer_norm(const LayerNormArgs& args) noexcept {
  const auto size = static_cast<float>(args.size);
  V16 sum = zero();
  for (std::int64_t i = 0; i < args.size; i += 16) {
    sum = add(sum, load_first(args.x + i, args.size - i));
  }
  const V16 mean = set1(fold_add(sum) / size);
  V16 squares = zero();
  for (std::int64_t i = 0; i < args.size; i += 16) {
    const std::int64_t left = args.size - i;
    const V16 d = keep_first(sub(load_first(args.x + i, left), mean), left, zero());
    squares = fma(d, d, squares);
  }
  const V16 scale = set1(reciprocal_root(fold_add(squares) / size + args.eps));
  for (std::int64_t i = 0; i < args.size; i += 16) {
    const std::int64_t left = args.size - i;
    const V16 normed = mul(sub(load_first(args.x + i, left), mean), scale);
    const V16 y = fma(normed, load_first(args.weight + i, left), load_first(args.bias + i, left));
    store_first_bf16(args.y + i, y, left);
  }
  for (std::int64_t i = args.size; i < args.y_size; ++i) {
    args.y[i] = 0;
  }
}

static void bias_rope(const BiasRopeArgs& args) noexcept {
  const std::int64_t half = args.head_dim / 2;
  for (std::int64_t i = 0; i < half; i += 16) {
    const std::int64_t left = half - i;
    const V16 a = add(load_first(args.x + i, left), load_first(args.bias + i, left));
    const V16 b = add(load_first(args.x + half + i, left), load_first(args.bias + half + i, left));
    const V16 cos = load_first(args.cos + i, left);
    const V16 sin = load_first(args.sin + i, left);
    store_first_bf16(args.y + i, fnma(b, sin, mul(a, cos)), left);
    store_first_bf16(args.y + half + i, fma(a, sin, mul(b, cos)), left);
  }
  zero_padding(args.y, args.head_dim);
}

static void full_attention(const FullAttentionArgs& args) noexcept {
  const KvBlockLayout layout{args.head_dim};
  alignas(64) float out[kAttentionRowsMax * kFullAttentionHeadDimMax];
  std::int64_t visible[kAttentionRowsMax];
  std::int64_t out_offset[kAttentionRowsMax];
  for (std::int64_t r = 0; r < kAttentionRowsMax; ++r) {
    visible[r] = args.keys;
    out_offset[r] = r * args.head_dim;
  }
  for (std::int64_t row = 0; row < args.rows; row += kAttentionRowsMax) {
    const std::int64_t left = args.rows - row;
    const std::int64_t rows = left < kAttentionRowsMax ? left : kAttentionRowsMax;
    attention({.q = args.q + row * pad32(args.head_dim),
               .visible = visible,
               .out = out,
               .out_offset = out_offset,
               .rows = rows,
               .head_dim = args.head_dim,
               .kv_blocks = reinterpret_cast<const std::byte*>(args.kv),
               .kv_block_stride = layout.bytes(1),
               .block_table = nullptr,
               .scale = args.scale});
    for (std::int64_t r = 0; r < rows; ++r) {
      to_bf16(out + r * args.head_dim, args.out + (row + r) * args.out_stride, args.head_dim);
    }
  }
}

static void bias_gelu(const float* x, const float* bias, bf16_t* y, std::int64_t size) noexcept {
  for (std::int64_t i = 0; i < size; i += 16) {
    const std::int64_t left = size - i;
    const V16 sum = add(load_first(x + i, left), load_first(bias + i, left));
    store_first_bf16(y + i, gelu(sum), left);
  }
}

static void bias_gelu_tanh(const float* x, const float* bias, bf16_t* y,
                           std::int64_t size) noexcept {
  for (std::int64_t i = 0; i < size; i += 16) {
    const std::int64_t left = size - i;
    const V16 sum = add(load_first(x + i, left), load_first(bias + i, left));
    store_first_bf16(y + i, gelu_tanh(sum), left);
  }
}

static void add_with_bias(float* x, const float* y, const float* bias, std::int64_t size) noexcept {
  for (std::int64_t i = 0; i < size; i += 16) {
    const std::int64_t left = size - i;
    const V16 sum = add(load_first(y + i, left), load_first(bias + i, left));
    store_first(x + i, add(load_first(x + i, left), sum), left);
  }
}
