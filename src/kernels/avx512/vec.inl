// Sixteen fp32 lanes in one zmm register. Same interface as avx2/vec.inl.

#define SLUICE_INLINE static inline __attribute__((always_inline))

struct V16 {
  __m512 v;
};

SLUICE_INLINE V16 zero() {
  return {_mm512_setzero_ps()};
}
SLUICE_INLINE V16 set1(float x) {
  return {_mm512_set1_ps(x)};
}
SLUICE_INLINE V16 load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
SLUICE_INLINE void store(float* p, V16 x) {
  _mm512_storeu_ps(p, x.v);
}

SLUICE_INLINE V16 add(V16 a, V16 b) {
  return {_mm512_add_ps(a.v, b.v)};
}
SLUICE_INLINE V16 sub(V16 a, V16 b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
SLUICE_INLINE V16 mul(V16 a, V16 b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
SLUICE_INLINE V16 div(V16 a, V16 b) {
  return {_mm512_div_ps(a.v, b.v)};
}
SLUICE_INLINE V16 fma(V16 a, V16 b, V16 c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
SLUICE_INLINE V16 fnma(V16 a, V16 b, V16 c) {
  return {_mm512_fnmadd_ps(a.v, b.v, c.v)};
}
// a > b ? a : b, lane by lane (b when unordered); min alike.
SLUICE_INLINE V16 max(V16 a, V16 b) {
  return {_mm512_max_ps(a.v, b.v)};
}
SLUICE_INLINE V16 min(V16 a, V16 b) {
  return {_mm512_min_ps(a.v, b.v)};
}

// x < limit ? 0 : y.
SLUICE_INLINE V16 zero_below(V16 x, V16 limit, V16 y) {
  return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x.v, limit.v, _CMP_NLT_UQ), y.v)};
}

// Lanes [0, count) of x, other in the rest. count may be anything.
SLUICE_INLINE V16 keep_first(V16 x, std::int64_t count, V16 other) {
  const auto mask = static_cast<__mmask16>(count >= 16  ? 0xffffU
                                           : count <= 0 ? 0U
                                                        : (1U << count) - 1U);
  return {_mm512_mask_mov_ps(other.v, mask, x.v)};
}

SLUICE_INLINE V16 round_even(V16 x) {
  return {_mm512_roundscale_ps(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

// p * 2^n for integer-valued n in [-126, 127].
SLUICE_INLINE V16 scale_by_power(V16 p, V16 n) {
  return {_mm512_scalef_ps(p.v, n.v)};
}

SLUICE_INLINE V16 diff_f64(double g, const double* other) {
  const __m512d wide = _mm512_set1_pd(g);
  const __m256 low = _mm512_cvtpd_ps(_mm512_sub_pd(wide, _mm512_loadu_pd(other)));
  const __m256 high = _mm512_cvtpd_ps(_mm512_sub_pd(wide, _mm512_loadu_pd(other + 8)));
  return {_mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1)};
}

// fp32 bits rounded to bf16 (nearest even, quiet NaN), still in the upper half of each lane.
SLUICE_INLINE __m512i round_to_bf16(V16 x) {
  const __m512i bits = _mm512_castps_si512(x.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(x.v, x.v, _CMP_UNORD_Q);
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  return _mm512_mask_mov_epi32(rounded, is_nan, quiet);
}

SLUICE_INLINE V16 to_bf16_and_back(V16 x) {
  return {_mm512_castsi512_ps(
      _mm512_and_si512(round_to_bf16(x), _mm512_set1_epi32(static_cast<int>(0xffff0000U))))};
}

SLUICE_INLINE void store_bf16(bf16_t* p, V16 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtepi32_epi16(_mm512_srli_epi32(round_to_bf16(x), 16)));
}

SLUICE_INLINE V16 load_bf16(const bf16_t* p) {
  const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
}

// Sixteen (even, odd) pairs of bf16: one row of a packed tile.
struct Pairs {
  __m512i words;
};
SLUICE_INLINE Pairs load_pairs(const bf16_t* p) {
  return {_mm512_loadu_si512(p)};
}
SLUICE_INLINE V16 even(Pairs p) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(p.words, 16))};
}
SLUICE_INLINE V16 odd(Pairs p) {
  return {_mm512_castsi512_ps(
      _mm512_and_si512(p.words, _mm512_set1_epi32(static_cast<int>(0xffff0000U))))};
}
SLUICE_INLINE void store_pairs(bf16_t* p, V16 even_lanes, V16 odd_lanes) {
  const __m512i low = _mm512_srli_epi32(round_to_bf16(even_lanes), 16);
  const __m512i high =
      _mm512_and_si512(round_to_bf16(odd_lanes), _mm512_set1_epi32(static_cast<int>(0xffff0000U)));
  _mm512_storeu_si512(p, _mm512_or_si512(low, high));
}

// Folds the lanes 8 + 8, 4 + 4, 2 + 2, 1 + 1.
SLUICE_INLINE float fold_add(V16 x) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

SLUICE_INLINE float fold_max(V16 x) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// Rows and half panels (16 columns) one product block keeps in registers: 4 x 2 x (even, odd, sum)
// = 24 of the 32 zmm registers.
constexpr int kProductRows = 4;
constexpr int kProductHalves = 2;
// Vectors of a row that the delta rule carries along its tail at once: two chains for each.
constexpr int kChainVectors = 4;
