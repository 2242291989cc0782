// What an integer product reads: steps of int8 weights. One struct per format; everything above it
// is the same code. int8 lies as it is used, int4 is decoded into a buffer first.

// value = s code - zero, zero = 8 s or 7 s: bytes hold all of it.
SLUICE_INLINE void decode_int4_step(const std::byte* step, std::byte* out) {
  const std::byte* codes = step + kInt4ScaleBytes;
#pragma GCC unroll 4
  for (int group = 0; group < 4; ++group) {  // half 0 group 0, half 0 group 1, half 1 ...
    const Bytes stored = spread_bytes(step + group * 16);
    const Bytes scale = and_bytes(stored, kInt4ScaleMask);
    const Bytes zero = sub_bytes(times_eight(scale), keep_where_negative(scale, stored));
#pragma GCC unroll 4
    for (int row = 0; row < 4; ++row) {
      const Bytes both = load_bytes(codes + group * 256 + row * 64);
      std::byte* quads = out + group * 512 + row * 128;
      store_bytes(quads, sub_bytes(mul_bytes(low_halves(both), scale), zero));
      store_bytes(quads + 64, sub_bytes(mul_bytes(high_halves(both), scale), zero));
    }
  }
}

struct Int8Weights {
  static constexpr WeightFormat kFormat = WeightFormat::int8;
  static constexpr std::int64_t kStepBytes = kIntStepBytes;
  static constexpr bool kDecodes = false;
  static void decode_step(const std::byte*, std::byte*) {}
};

struct Int4Weights {
  static constexpr WeightFormat kFormat = WeightFormat::int4;
  static constexpr std::int64_t kStepBytes = kInt4StepBytes;
  static constexpr bool kDecodes = true;
  static void decode_step(const std::byte* step, std::byte* out) { decode_int4_step(step, out); }
};
