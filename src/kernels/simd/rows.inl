// Norms, rotation, convolution and gates: one row at a time (ref/rows.cpp says what they compute).

static void rms_norm(const RmsNormArgs& args) noexcept {
  const V16 scale = set1(rms_scale(args.x, args.size, args.eps));
  for (std::int64_t i = 0; i < args.size; i += 16) {
    const std::int64_t left = args.size - i;
    const V16 x = mul(load_first(args.x + i, left), scale);
    store_first_bf16(args.y + i, mul(x, load_first(args.weight + i, left)), left);
  }
  zero_padding(args.y, args.size);
}

static void norm_rope(const NormRopeArgs& args) noexcept {
  const V16 scale = set1(rms_scale(args.x, args.head_dim, args.eps));
  const std::int64_t half = args.half;
  for (std::int64_t i = 0; i < half; i += 16) {
    const std::int64_t left = half - i;
    const V16 a = mul(mul(load_first(args.x + i, left), scale), load_first(args.weight + i, left));
    const V16 b = mul(mul(load_first(args.x + half + i, left), scale),
                      load_first(args.weight + half + i, left));
    const V16 cos = load_first(args.cos + i, left);
    const V16 sin = load_first(args.sin + i, left);
    store_first_bf16(args.y + i, fnma(b, sin, mul(a, cos)), left);
    store_first_bf16(args.y + half + i, fma(a, sin, mul(b, cos)), left);
  }
  for (std::int64_t i = 2 * half; i < args.head_dim; i += 16) {
    const std::int64_t left = args.head_dim - i;
    const V16 x = mul(load_first(args.x + i, left), scale);
    store_first_bf16(args.y + i, mul(x, load_first(args.weight + i, left)), left);
  }
  zero_padding(args.y, args.head_dim);
}

static void conv_silu(const ConvArgs& args) noexcept {
  for (std::int64_t t = 0; t < args.rows; ++t) {
    const bf16_t* taps[kConvTaps];
    for (std::int64_t j = 0; j < kConvTaps; ++j) {
      const std::int64_t row = t + j - (kConvTaps - 1);
      taps[j] =
          row < 0 ? args.history + (row + 3) * args.history_stride : args.u + row * args.u_stride;
    }
    for (std::int64_t c = 0; c < args.channels; c += 16) {
      const std::int64_t left = args.channels - c;
      V16 sum = zero();
      for (std::int64_t j = 0; j < kConvTaps; ++j) {
        sum = fma(load_first(args.weight + j * args.weight_stride + c, left),
                  load_first_bf16(taps[j] + c, left), sum);
      }
      store_first(args.out + t * args.out_stride + c, silu(sum), left);
    }
  }
}

static void l2_norm(const L2NormArgs& args) noexcept {
  const V16 scale = set1(reciprocal_root(sum_of_squares(args.x, args.size) + 1e-6F));
  for (std::int64_t i = 0; i < args.size; i += 16) {
    const std::int64_t left = args.size - i;
    store_first_bf16(args.y + i, mul(load_first(args.x + i, left), scale), left);
  }
  zero_padding(args.y, args.size);
}

static void gated_norm(const GatedNormArgs& args) noexcept {
  const V16 scale = set1(rms_scale(args.x, args.size, args.eps));
  for (std::int64_t i = 0; i < args.size; i += 16) {
    const std::int64_t left = args.size - i;
    const V16 x = mul(mul(load_first(args.x + i, left), scale), load_first(args.weight + i, left));
    store_first_bf16(args.y + i, mul(x, silu(load_first(args.z + i, left))), left);
  }
}

static void silu_mul(const float* gate, const float* up, bf16_t* y, std::int64_t size) noexcept {
  for (std::int64_t i = 0; i < size; i += 16) {
    const std::int64_t left = size - i;
    store_first_bf16(y + i, mul(silu(load_first(gate + i, left)), load_first(up + i, left)), left);
  }
}

static void sigmoid_mul(const float* x, const float* gate, bf16_t* y, std::int64_t size) noexcept {
  for (std::int64_t i = 0; i < size; i += 16) {
    const std::int64_t left = size - i;
    store_first_bf16(y + i, mul(load_first(x + i, left), sigmoid(load_first(gate + i, left))),
                     left);
  }
}

static void add(float* x, const float* y, std::int64_t size) noexcept {
  for (std::int64_t i = 0; i < size; i += 16) {
    const std::int64_t left = size - i;
    store_first(x + i, add(load_first(x + i, left), load_first(y + i, left)), left);
  }
}

static void to_bf16(const float* x, bf16_t* y, std::int64_t size) noexcept {
  for (std::int64_t i = 0; i < size; i += 16) {
    store_first_bf16(y + i, load_first(x + i, size - i), size - i);
  }
}

static void to_f32(const bf16_t* x, float* y, std::int64_t size) noexcept {
  for (std::int64_t i = 0; i < size; i += 16) {
    store_first(y + i, load_first_bf16(x + i, size - i), size - i);
  }
}
