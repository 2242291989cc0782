// Sixteen fp32 lanes in two ymm registers. Same interface as avx512/vec.inl.

#define SLUICE_INLINE static inline __attribute__((always_inline))

struct V16 {
  __m256 a;  // lanes 0 .. 7
  __m256 b;  // lanes 8 .. 15
};

SLUICE_INLINE V16 zero() {
  return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}
SLUICE_INLINE V16 set1(float x) {
  const __m256 v = _mm256_set1_ps(x);
  return {v, v};
}
SLUICE_INLINE V16 load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
SLUICE_INLINE void store(float* p, V16 x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}

SLUICE_INLINE V16 add(V16 x, V16 y) {
  return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
SLUICE_INLINE V16 sub(V16 x, V16 y) {
  return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
SLUICE_INLINE V16 mul(V16 x, V16 y) {
  return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
SLUICE_INLINE V16 div(V16 x, V16 y) {
  return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}
SLUICE_INLINE V16 fma(V16 x, V16 y, V16 z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
SLUICE_INLINE V16 fnma(V16 x, V16 y, V16 z) {
  return {_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b)};
}
// x > y ? x : y, lane by lane (y when unordered); min alike.
SLUICE_INLINE V16 max(V16 x, V16 y) {
  return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}
SLUICE_INLINE V16 min(V16 x, V16 y) {
  return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}

// x < limit ? 0 : y.
SLUICE_INLINE V16 zero_below(V16 x, V16 limit, V16 y) {
  return {_mm256_and_ps(_mm256_cmp_ps(x.a, limit.a, _CMP_NLT_UQ), y.a),
          _mm256_and_ps(_mm256_cmp_ps(x.b, limit.b, _CMP_NLT_UQ), y.b)};
}

// Lanes [0, count) of x, other in the rest. count may be anything.
SLUICE_INLINE V16 keep_first(V16 x, std::int64_t count, V16 other) {
  const int limit = static_cast<int>(count >= 16 ? 16 : count <= 0 ? 0 : count);
  const __m256i wanted = _mm256_set1_epi32(limit);
  const __m256i low = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i high = _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15);
  return {_mm256_blendv_ps(other.a, x.a, _mm256_castsi256_ps(_mm256_cmpgt_epi32(wanted, low))),
          _mm256_blendv_ps(other.b, x.b, _mm256_castsi256_ps(_mm256_cmpgt_epi32(wanted, high)))};
}

SLUICE_INLINE V16 round_even(V16 x) {
  return {_mm256_round_ps(x.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
          _mm256_round_ps(x.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

// p * 2^n for integer-valued n in [-126, 127].
SLUICE_INLINE __m256 scale_half(__m256 p, __m256 n) {
  const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_mul_ps(p, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
}
SLUICE_INLINE V16 scale_by_power(V16 p, V16 n) {
  return {scale_half(p.a, n.a), scale_half(p.b, n.b)};
}

SLUICE_INLINE __m256 diff_half(__m256d wide, const double* other) {
  const __m128 low = _mm256_cvtpd_ps(_mm256_sub_pd(wide, _mm256_loadu_pd(other)));
  const __m128 high = _mm256_cvtpd_ps(_mm256_sub_pd(wide, _mm256_loadu_pd(other + 4)));
  return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
}
SLUICE_INLINE V16 diff_f64(double g, const double* other) {
  const __m256d wide = _mm256_set1_pd(g);
  return {diff_half(wide, other), diff_half(wide, other + 8)};
}

// fp32 bits rounded to bf16 (nearest even, quiet NaN), still in the upper half of each lane.
SLUICE_INLINE __m256i round_half(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  return _mm256_blendv_epi8(rounded, quiet, is_nan);
}

SLUICE_INLINE __m256i upper_half(__m256i x) {
  return _mm256_and_si256(x, _mm256_set1_epi32(static_cast<int>(0xffff0000U)));
}

SLUICE_INLINE V16 to_bf16_and_back(V16 x) {
  return {_mm256_castsi256_ps(upper_half(round_half(x.a))),
          _mm256_castsi256_ps(upper_half(round_half(x.b)))};
}

SLUICE_INLINE void store_bf16(bf16_t* p, V16 x) {
  const __m256i packed = _mm256_packus_epi32(_mm256_srli_epi32(round_half(x.a), 16),
                                             _mm256_srli_epi32(round_half(x.b), 16));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}

SLUICE_INLINE __m256 load_half_bf16(const bf16_t* p) {
  const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
SLUICE_INLINE V16 load_bf16(const bf16_t* p) {
  return {load_half_bf16(p), load_half_bf16(p + 8)};
}

// Sixteen (even, odd) pairs of bf16: one row of a packed tile.
struct Pairs {
  __m256i a;
  __m256i b;
};
SLUICE_INLINE Pairs load_pairs(const bf16_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 16))};
}
SLUICE_INLINE V16 even(Pairs p) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(p.a, 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(p.b, 16))};
}
SLUICE_INLINE V16 odd(Pairs p) {
  return {_mm256_castsi256_ps(upper_half(p.a)), _mm256_castsi256_ps(upper_half(p.b))};
}
SLUICE_INLINE void store_half_pairs(bf16_t* p, __m256 even_lanes, __m256 odd_lanes) {
  const __m256i low = _mm256_srli_epi32(round_half(even_lanes), 16);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm256_or_si256(low, upper_half(round_half(odd_lanes))));
}
SLUICE_INLINE void store_pairs(bf16_t* p, V16 even_lanes, V16 odd_lanes) {
  store_half_pairs(p, even_lanes.a, odd_lanes.a);
  store_half_pairs(p + 16, even_lanes.b, odd_lanes.b);
}

// Folds the lanes 8 + 8, 4 + 4, 2 + 2, 1 + 1.
SLUICE_INLINE float fold_add(V16 x) {
  const __m256 eight = _mm256_add_ps(x.a, x.b);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

SLUICE_INLINE float fold_max(V16 x) {
  const __m256 eight = _mm256_max_ps(x.a, x.b);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// Rows and half panels (16 columns) one product block keeps in registers: 2 x 1 x (even, odd) take
// 8 of the 16 ymm registers; the sums are touched once per step only.
constexpr int kProductRows = 2;
constexpr int kProductHalves = 1;
// Vectors of a row that the delta rule carries along its tail at once: two chains for each.
constexpr int kChainVectors = 2;
