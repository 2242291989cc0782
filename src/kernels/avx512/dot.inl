// Products of int8 without VNNI: |w| unsigned times a with the sign of w. Pairs are at most
// 2 x 128 x 127 and fit int16.

struct Weights {
  __m512i magnitude;
  __mmask64 negative;
};
SLUICE_INLINE Weights prepare(Bytes w) {
  return {_mm512_abs_epi8(w.v), _mm512_movepi8_mask(w.v)};
}
// sum[c] += a[0..3] . w[4c .. 4c + 3]
SLUICE_INLINE I16 dot4(I16 sum, Weights w, const std::int8_t* a) {
  int four = 0;
  __builtin_memcpy(&four, a, 4);
  const __m512i x = _mm512_set1_epi32(four);
  const __m512i signed_x = _mm512_mask_sub_epi8(x, w.negative, _mm512_setzero_si512(), x);
  const __m512i pairs = _mm512_maddubs_epi16(w.magnitude, signed_x);
  return {_mm512_add_epi32(sum.v, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))};
}
constexpr bool kStartNeedsRowSum = false;
// What the sums of a row start from; row_sum: of its activations.
SLUICE_INLINE I16 start_of(std::int32_t) {
  return {_mm512_setzero_si512()};
}

// Rows and half panels whose sums stay in registers.
constexpr int kIntRows = 4;
constexpr int kIntHalves = 2;
