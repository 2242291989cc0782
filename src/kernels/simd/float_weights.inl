// What a product of bf16 operands reads: steps of bf16. One struct per format; everything above it
// is the same code. bf16 lies as it is used, fp8 is decoded into a buffer first.

// A code is s hhh l mmm: sign, exponent, mantissa. bf16(value x scale) does not see powers of two,
// so sixteen results tell all others: those of 001 l mmm, with 2 (hhh - 1) more in the exponent,
// which is hhh - 1 more in the high byte. Where hhh is 0 there are subnormal codes: sixteen more
// results. This holds while all results are normal or zero, as they are for scales between these.
constexpr float kFp8PlainMin = 0x1p-110F;
constexpr float kFp8PlainMax = 0x1p118F;

SLUICE_INLINE void decode_fp8_step(const std::byte* step, float scale, std::byte* out) {
  const float magnitude = scale < 0.0F ? -scale : scale;
  if (!(magnitude >= kFp8PlainMin && magnitude <= kFp8PlainMax)) {  // hardly ever
    auto* weights = reinterpret_cast<bf16_t*>(out);
    for (int i = 0; i < kStepElements; ++i) {
      weights[i] = fp8_weight(static_cast<std::uint8_t>(step[i]), scale);
    }
    return;
  }
  const Bf16Table first = bf16_table(mul(load(kF8E4m3Values.of), set1(scale)));
  const Bf16Table next = bf16_table(mul(load(kF8E4m3Values.of + 16), set1(scale)));
#pragma GCC unroll 4
  for (int i = 0; i < kStepElements; i += 64) {
    const Bytes code = load_for_words(step + i);
    const Bytes index = and_bytes(code, 15);
    const Bytes above = and_bytes(high_halves(code), 7);
    const Bytes low = where_zero(above, look_up(first.low, index), look_up(next.low, index));
    const Bytes high = where_zero(above, look_up(first.high, index), look_up(next.high, index));
    store_words(out + i * 2, low,
                xor_bytes(add_bytes(high, one_less(above)), and_bytes(code, 0x80)));
  }
}

struct Bf16Weights {
  static constexpr WeightFormat kFormat = WeightFormat::bf16;
  static constexpr std::int64_t kStepBytes = kStepElements * 2;
  static constexpr bool kDecodes = false;
  static void decode_step(const std::byte*, float, std::byte*) {}
};

struct Fp8Weights {
  static constexpr WeightFormat kFormat = WeightFormat::fp8;
  static constexpr std::int64_t kStepBytes = kFp8StepBytes;
  static constexpr bool kDecodes = true;
  static void decode_step(const std::byte* step, float scale, std::byte* out) {
    decode_fp8_step(step, scale, out);
  }
};
