// Sixty-four int8 and sixteen int32 lanes in two ymm registers each, and products of int8. Same
// interface as avx512/bytes.inl and avx512/dot.inl.

struct Bytes {
  __m256i a;
  __m256i b;
};
struct I16 {
  __m256i a;
  __m256i b;
};

SLUICE_INLINE Bytes load_bytes(const void* p) {
  const auto* halves = static_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)};
}
SLUICE_INLINE void store_bytes(void* p, Bytes x) {
  auto* halves = static_cast<__m256i*>(p);
  _mm256_storeu_si256(halves, x.a);
  _mm256_storeu_si256(halves + 1, x.b);
}
SLUICE_INLINE __m256i spread_half(const void* p) {
  const __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
  const __m256i twice = _mm256_or_si256(wide, _mm256_slli_epi32(wide, 8));
  return _mm256_or_si256(twice, _mm256_slli_epi32(twice, 16));
}
// Each of the sixteen bytes at p four times.
SLUICE_INLINE Bytes spread_bytes(const void* p) {
  return {spread_half(p), spread_half(static_cast<const std::byte*>(p) + 8)};
}
SLUICE_INLINE Bytes and_bytes(Bytes x, int mask) {
  const __m256i m = _mm256_set1_epi8(static_cast<char>(mask));
  return {_mm256_and_si256(x.a, m), _mm256_and_si256(x.b, m)};
}
// The high half of every byte as a number from 0 to 15; the low half.
SLUICE_INLINE Bytes high_halves(Bytes x) {
  return and_bytes({_mm256_srli_epi16(x.a, 4), _mm256_srli_epi16(x.b, 4)}, 15);
}
SLUICE_INLINE Bytes low_halves(Bytes x) {
  return and_bytes(x, 15);
}
SLUICE_INLINE Bytes sub_bytes(Bytes x, Bytes y) {
  return {_mm256_sub_epi8(x.a, y.a), _mm256_sub_epi8(x.b, y.b)};
}
// x y of unsigned bytes; products stay below 256, and neighbouring bytes of y are the same.
SLUICE_INLINE Bytes mul_bytes(Bytes x, Bytes y) {
  const __m256i low = _mm256_set1_epi16(0xff);
  return {_mm256_mullo_epi16(x.a, _mm256_and_si256(y.a, low)),
          _mm256_mullo_epi16(x.b, _mm256_and_si256(y.b, low))};
}
// 8 x of unsigned bytes up to 31.
SLUICE_INLINE Bytes times_eight(Bytes x) {
  return {_mm256_slli_epi16(x.a, 3), _mm256_slli_epi16(x.b, 3)};
}
// x where the top bit of y is set, else 0.
SLUICE_INLINE Bytes keep_where_negative(Bytes x, Bytes y) {
  const __m256i none = _mm256_setzero_si256();
  return {_mm256_and_si256(x.a, _mm256_cmpgt_epi8(none, y.a)),
          _mm256_and_si256(x.b, _mm256_cmpgt_epi8(none, y.b))};
}

SLUICE_INLINE Bytes add_bytes(Bytes x, Bytes y) {
  return {_mm256_add_epi8(x.a, y.a), _mm256_add_epi8(x.b, y.b)};
}
SLUICE_INLINE Bytes xor_bytes(Bytes x, Bytes y) {
  return {_mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b)};
}
// x - 1 of unsigned bytes; 0 stays 0.
SLUICE_INLINE Bytes one_less(Bytes x) {
  const __m256i one = _mm256_set1_epi8(1);
  return {_mm256_subs_epu8(x.a, one), _mm256_subs_epu8(x.b, one)};
}
// x where the byte of y is zero, else z.
SLUICE_INLINE Bytes where_zero(Bytes y, Bytes x, Bytes z) {
  const __m256i none = _mm256_setzero_si256();
  return {_mm256_blendv_epi8(z.a, x.a, _mm256_cmpeq_epi8(y.a, none)),
          _mm256_blendv_epi8(z.b, x.b, _mm256_cmpeq_epi8(y.b, none))};
}

// Sixteen bf16 as two tables, of their low and of their high bytes.
struct Bf16Table {
  Bytes low;
  Bytes high;
};
// Sixteen numbers from 0 to 255 in 32-bit lanes as bytes, in every quarter.
SLUICE_INLINE Bytes narrow_lanes(__m256i a, __m256i b) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8);
  const __m256i bytes = _mm256_packus_epi16(words, words);
  const __m256i table = _mm256_permute4x64_epi64(bytes, 0x88);
  return {table, table};
}
// x rounded to bf16.
SLUICE_INLINE Bf16Table bf16_table(V16 x) {
  const __m256i a = round_half(x.a);
  const __m256i b = round_half(x.b);
  const __m256i byte = _mm256_set1_epi32(0xff);
  return {narrow_lanes(_mm256_and_si256(_mm256_srli_epi32(a, 16), byte),
                       _mm256_and_si256(_mm256_srli_epi32(b, 16), byte)),
          narrow_lanes(_mm256_srli_epi32(a, 24), _mm256_srli_epi32(b, 24))};
}
// The bytes of a table at indices from 0 to 15.
SLUICE_INLINE Bytes look_up(Bytes table, Bytes index) {
  return {_mm256_shuffle_epi8(table.a, index.a), _mm256_shuffle_epi8(table.b, index.b)};
}

// Sixty-four bytes in the order in which store_words() puts words together.
SLUICE_INLINE Bytes load_for_words(const void* p) {
  const Bytes x = load_bytes(p);
  return {_mm256_permute4x64_epi64(x.a, 0xd8), _mm256_permute4x64_epi64(x.b, 0xd8)};
}
// Sixty-four words of a low and a high byte each.
SLUICE_INLINE void store_words(void* p, Bytes low, Bytes high) {
  store_bytes(p, {_mm256_unpacklo_epi8(low.a, high.a), _mm256_unpackhi_epi8(low.a, high.a)});
  store_bytes(static_cast<std::byte*>(p) + 64,
              {_mm256_unpacklo_epi8(low.b, high.b), _mm256_unpackhi_epi8(low.b, high.b)});
}

SLUICE_INLINE I16 load_i32(const std::int32_t* p) {
  const Bytes bits = load_bytes(p);
  return {bits.a, bits.b};
}
SLUICE_INLINE void store_i32(std::int32_t* p, I16 x) {
  store_bytes(p, {x.a, x.b});
}
SLUICE_INLINE V16 to_float(I16 x) {
  return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)};
}

// Sixteen integer-valued lanes in [-128, 127] as int8.
SLUICE_INLINE void store_int8(std::int8_t* p, V16 x) {
  const __m256i words = _mm256_permute4x64_epi64(
      _mm256_packs_epi32(_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)), 0xd8);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(p),
      _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}

// |w| unsigned times a with the sign of w. Pairs are at most 2 x 128 x 127 and fit int16.
struct Weights {
  Bytes w;
  Bytes magnitude;
};
SLUICE_INLINE Weights prepare(Bytes w) {
  return {w, {_mm256_abs_epi8(w.a), _mm256_abs_epi8(w.b)}};
}
SLUICE_INLINE __m256i dot4_half(__m256i sum, __m256i w, __m256i magnitude, __m256i x) {
  const __m256i pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(x, w));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
// sum[c] += a[0..3] . w[4c .. 4c + 3]
SLUICE_INLINE I16 dot4(I16 sum, Weights w, const std::int8_t* a) {
  int four = 0;
  __builtin_memcpy(&four, a, 4);
  const __m256i x = _mm256_set1_epi32(four);
  return {dot4_half(sum.a, w.w.a, w.magnitude.a, x), dot4_half(sum.b, w.w.b, w.magnitude.b, x)};
}
constexpr bool kStartNeedsRowSum = false;
// What the sums of a row start from; row_sum: of its activations.
SLUICE_INLINE I16 start_of(std::int32_t) {
  return {_mm256_setzero_si256(), _mm256_setzero_si256()};
}

// Rows and half panels whose sums stay in registers.
constexpr int kIntRows = 2;
constexpr int kIntHalves = 1;
