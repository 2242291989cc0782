// Sixty-four int8 and sixteen int32 lanes in one zmm register each. Same interface as
// avx2/bytes.inl.

struct Bytes {
  __m512i v;
};
struct I16 {
  __m512i v;
};

SLUICE_INLINE Bytes load_bytes(const void* p) {
  return {_mm512_loadu_si512(p)};
}
SLUICE_INLINE void store_bytes(void* p, Bytes x) {
  _mm512_storeu_si512(p, x.v);
}
// Each of the sixteen bytes at p four times.
SLUICE_INLINE Bytes spread_bytes(const void* p) {
  const __m512i wide = _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  const __m512i twice = _mm512_or_si512(wide, _mm512_slli_epi32(wide, 8));
  return {_mm512_or_si512(twice, _mm512_slli_epi32(twice, 16))};
}
SLUICE_INLINE Bytes and_bytes(Bytes x, int mask) {
  return {_mm512_and_si512(x.v, _mm512_set1_epi8(static_cast<char>(mask)))};
}
// The high half of every byte as a number from 0 to 15; the low half.
SLUICE_INLINE Bytes high_halves(Bytes x) {
  return and_bytes({_mm512_srli_epi16(x.v, 4)}, 15);
}
SLUICE_INLINE Bytes low_halves(Bytes x) {
  return and_bytes(x, 15);
}
SLUICE_INLINE Bytes sub_bytes(Bytes x, Bytes y) {
  return {_mm512_sub_epi8(x.v, y.v)};
}
// x y of unsigned bytes; products stay below 256, and neighbouring bytes of y are the same.
SLUICE_INLINE Bytes mul_bytes(Bytes x, Bytes y) {
  return {_mm512_mullo_epi16(x.v, _mm512_and_si512(y.v, _mm512_set1_epi16(0xff)))};
}
// 8 x of unsigned bytes up to 31.
SLUICE_INLINE Bytes times_eight(Bytes x) {
  return {_mm512_slli_epi16(x.v, 3)};
}
// x where the top bit of y is set, else 0.
SLUICE_INLINE Bytes keep_where_negative(Bytes x, Bytes y) {
  return {_mm512_maskz_mov_epi8(_mm512_movepi8_mask(y.v), x.v)};
}

SLUICE_INLINE Bytes add_bytes(Bytes x, Bytes y) {
  return {_mm512_add_epi8(x.v, y.v)};
}
SLUICE_INLINE Bytes xor_bytes(Bytes x, Bytes y) {
  return {_mm512_xor_si512(x.v, y.v)};
}
// x - 1 of unsigned bytes; 0 stays 0.
SLUICE_INLINE Bytes one_less(Bytes x) {
  return {_mm512_subs_epu8(x.v, _mm512_set1_epi8(1))};
}
// x where the byte of y is zero, else z.
SLUICE_INLINE Bytes where_zero(Bytes y, Bytes x, Bytes z) {
  return {_mm512_mask_blend_epi8(_mm512_testn_epi8_mask(y.v, y.v), z.v, x.v)};
}

// Sixteen bf16 as two tables, of their low and of their high bytes.
struct Bf16Table {
  Bytes low;
  Bytes high;
};
// x rounded to bf16.
SLUICE_INLINE Bf16Table bf16_table(V16 x) {
  const __m512i bits = round_to_bf16(x);
  return {{_mm512_broadcast_i32x4(_mm512_cvtepi32_epi8(_mm512_srli_epi32(bits, 16)))},
          {_mm512_broadcast_i32x4(_mm512_cvtepi32_epi8(_mm512_srli_epi32(bits, 24)))}};
}
// The bytes of a table at indices from 0 to 15.
SLUICE_INLINE Bytes look_up(Bytes table, Bytes index) {
  return {_mm512_shuffle_epi8(table.v, index.v)};
}

// Sixty-four bytes in the order in which store_words() puts words together.
SLUICE_INLINE Bytes load_for_words(const void* p) {
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  return {_mm512_permutexvar_epi64(order, _mm512_loadu_si512(p))};
}
// Sixty-four words of a low and a high byte each.
SLUICE_INLINE void store_words(void* p, Bytes low, Bytes high) {
  _mm512_storeu_si512(p, _mm512_unpacklo_epi8(low.v, high.v));
  _mm512_storeu_si512(static_cast<std::byte*>(p) + 64, _mm512_unpackhi_epi8(low.v, high.v));
}

SLUICE_INLINE I16 load_i32(const std::int32_t* p) {
  return {_mm512_loadu_si512(p)};
}
SLUICE_INLINE void store_i32(std::int32_t* p, I16 x) {
  _mm512_storeu_si512(p, x.v);
}
SLUICE_INLINE V16 to_float(I16 x) {
  return {_mm512_cvtepi32_ps(x.v)};
}

// Sixteen integer-valued lanes in [-128, 127] as int8.
SLUICE_INLINE void store_int8(std::int8_t* p, V16 x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x.v)));
}
