// Transcendental functions on 16 lanes: scalar_math.h lane by lane, bit for bit.

SLUICE_INLINE V16 exp_f32(V16 x) {
  const V16 saturated = min(set1(kExpSaturateAt), x);
  const V16 n = round_even(mul(saturated, set1(kLog2E)));
  V16 r = fnma(n, set1(kLn2High), saturated);
  r = fnma(n, set1(kLn2Low), r);
  V16 p = set1(kExpPoly[0]);
#pragma GCC unroll 5
  for (int i = 1; i < 6; ++i) {
    p = fma(p, r, set1(kExpPoly[i]));
  }
  p = add(fma(p, mul(r, r), r), set1(1.0F));
  return zero_below(x, set1(kExpFlushBelow), scale_by_power(p, n));
}

SLUICE_INLINE V16 one_plus_exp_minus(V16 x) {
  return add(set1(1.0F), exp_f32(sub(zero(), x)));
}
SLUICE_INLINE V16 silu(V16 x) {
  return div(x, one_plus_exp_minus(x));
}
SLUICE_INLINE V16 sigmoid(V16 x) {
  return div(set1(1.0F), one_plus_exp_minus(x));
}

// e^(-x^2 / 2) t R(t), subtracted from the line for x > 0 (gelu_constants.h).
SLUICE_INLINE V16 gelu(V16 x) {
  const V16 a = max(x, sub(zero(), x));
  const V16 t = div(set1(1.0F), fma(a, set1(kGeluTailScale), set1(1.0F)));
  V16 p = set1(kGeluTailPoly[0]);
#pragma GCC unroll 8
  for (int i = 1; i < 9; ++i) {
    p = fma(p, t, set1(kGeluTailPoly[i]));
  }
  const V16 tail = mul(exp_f32(mul(mul(a, set1(-0.5F)), a)), mul(t, p));
  return fnma(a, tail, max(x, zero()));
}
SLUICE_INLINE V16 gelu_tanh(V16 x) {
  const V16 z = mul(x, fma(mul(x, x), set1(kGeluTanhCubic), set1(kGeluTanhLinear)));
  return div(x, one_plus_exp_minus(z));
}

// A row whose length need not be a multiple of 16 is read and written through a padded copy of its
// last lanes, so that the tail runs the same instructions.
SLUICE_INLINE V16 load_first(const float* p, std::int64_t count) {
  if (count >= 16) {
    return load(p);
  }
  alignas(64) float lanes[16] = {};
  for (std::int64_t i = 0; i < count; ++i) {
    lanes[i] = p[i];
  }
  return load(lanes);
}

SLUICE_INLINE V16 load_first_bf16(const bf16_t* p, std::int64_t count) {
  if (count >= 16) {
    return load_bf16(p);
  }
  alignas(64) bf16_t lanes[16] = {};
  for (std::int64_t i = 0; i < count; ++i) {
    lanes[i] = p[i];
  }
  return load_bf16(lanes);
}

SLUICE_INLINE void store_first(float* p, V16 x, std::int64_t count) {
  if (count >= 16) {
    store(p, x);
    return;
  }
  alignas(64) float lanes[16];
  store(lanes, x);
  for (std::int64_t i = 0; i < count; ++i) {
    p[i] = lanes[i];
  }
}

SLUICE_INLINE void store_first_bf16(bf16_t* p, V16 x, std::int64_t count) {
  if (count >= 16) {
    store_bf16(p, x);
    return;
  }
  alignas(64) bf16_t lanes[16];
  store_bf16(lanes, x);
  for (std::int64_t i = 0; i < count; ++i) {
    p[i] = lanes[i];
  }
}

SLUICE_INLINE float sum_of_squares(const float* x, std::int64_t size) {
  V16 sum = zero();
  for (std::int64_t i = 0; i < size; i += 16) {
    const V16 v = load_first(x + i, size - i);
    sum = fma(v, v, sum);
  }
  return fold_add(sum);
}

SLUICE_INLINE float reciprocal_root(float x) {
  return 1.0F / __builtin_sqrtf(x);
}

SLUICE_INLINE float rms_scale(const float* x, std::int64_t size, float eps) {
  return reciprocal_root(sum_of_squares(x, size) / static_cast<float>(size) + eps);
}

SLUICE_INLINE void zero_padding(bf16_t* y, std::int64_t size) {
  for (std::int64_t i = size; i < pad32(size); ++i) {
    y[i] = 0;
  }
}
