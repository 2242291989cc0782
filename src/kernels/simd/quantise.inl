// Rows of activations rounded to int8.

static void quantise_row(const QuantiseRowArgs& args) noexcept {
  bf16_t largest_bits = 0;  // NaN is the largest of all
  for (std::int64_t i = 0; i < args.size; ++i) {
    const auto magnitude = static_cast<bf16_t>(args.x[i] & 0x7fffU);
    largest_bits = magnitude > largest_bits ? magnitude : largest_bits;
  }
  const float largest = bf16_to_float(largest_bits);
  const bool finite = largest_bits < 0x7f80U;
  const bool is_zero = !finite || largest < kQuantisedMin;
  const V16 inverse = set1(is_zero ? 0.0F : 127.0F / largest);
  for (std::int64_t i = 0; i < pad64(args.size); i += 16) {
    std::int8_t* y = args.y + i / kIntStepK * kIntTileBytes + i % kIntStepK;
    const bool used = !is_zero && i < args.size;
    const V16 x = used ? keep_first(load_bf16(args.x + i), args.size - i, zero()) : zero();
    store_int8(y, round_even(mul(x, inverse)));
  }
  const float bad = __builtin_nanf("");
  *args.scale = !finite ? bad : is_zero ? 0.0F : largest / 127.0F;
}
