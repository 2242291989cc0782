// Products of int8 with VPDPBUSD, which wants one side unsigned: (w + 128) . a - 128 sum(a). Sums
// wrap, so the difference is exact.

struct Weights {
  __m512i raised;
};
SLUICE_INLINE Weights prepare(Bytes w) {
  return {_mm512_xor_si512(w.v, _mm512_set1_epi8(static_cast<char>(0x80)))};
}
// sum[c] += a[0..3] . w[4c .. 4c + 3] + 128 sum(a)
SLUICE_INLINE I16 dot4(I16 sum, Weights w, const std::int8_t* a) {
  int four = 0;
  __builtin_memcpy(&four, a, 4);
  return {_mm512_dpbusd_epi32(sum.v, w.raised, _mm512_set1_epi32(four))};
}
constexpr bool kStartNeedsRowSum = true;
// What the sums of a row start from; row_sum: of its activations.
SLUICE_INLINE I16 start_of(std::int32_t row_sum) {
  return {_mm512_set1_epi32(-128 * row_sum)};
}

// Rows and half panels whose sums stay in registers.
constexpr int kIntRows = 8;
constexpr int kIntHalves = 2;
