// 32 values rounded to bf16 by VCVTNE2PS2BF16: to nearest even, subnormals to zero. For values that
// are zero or whose rounding is normal these are the bits of store_bf16.
SLUICE_INLINE void store_bf16_pair(bf16_t* p, V16 first, V16 second) {
  _mm512_storeu_si512(p, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second.v, first.v)));
}

// Sixteen values rounded the same way, each bf16 in the low half of its lane.
SLUICE_INLINE __m512i rounded_low(V16 x) {
  return _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x.v)));
}

// Pairs of fp32 values as pairs of bf16 (simd/product.inl); results of arithmetic are not
// subnormal, so the rounding is that of store_pairs.
SLUICE_INLINE void store_split(bf16_t* high, bf16_t* low, V16 x0, V16 x1) {
  const __m512i h0 = rounded_low(x0);
  const __m512i h1 = _mm512_slli_epi32(rounded_low(x1), 16);
  const V16 l0 = sub(x0, {_mm512_castsi512_ps(_mm512_slli_epi32(h0, 16))});
  const V16 l1 = sub(x1, {_mm512_castsi512_ps(h1)});
  _mm512_storeu_si512(high, _mm512_or_si512(h0, h1));
  _mm512_storeu_si512(low,
                      _mm512_or_si512(rounded_low(l0), _mm512_slli_epi32(rounded_low(l1), 16)));
}
