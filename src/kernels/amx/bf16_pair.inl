// 32 values rounded to bf16 by VCVTNE2PS2BF16: to nearest even, subnormals to zero. For values that
// are zero or whose rounding is normal these are the bits of store_bf16.
SLUICE_INLINE void store_bf16_pair(bf16_t* p, V16 first, V16 second) {
  _mm512_storeu_si512(p, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second.v, first.v)));
}
