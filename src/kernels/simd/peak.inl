// Ceilings of sixteen-lane code: fused multiply-adds in registers, and reading memory.

static void peak_fma(std::int64_t rounds) noexcept {
  volatile float half = 0.5F;
  const V16 x = set1(half);
  V16 sums[kPeakSums];
#pragma GCC unroll 16
  for (int i = 0; i < kPeakSums; ++i) {
    sums[i] = set1(static_cast<float>(i));
  }
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kPeakSums; ++i) {
      sums[i] = fma(sums[i], x, x);
    }
  }
#pragma GCC unroll 16
  for (int i = 1; i < kPeakSums; ++i) {
    sums[0] = add(sums[0], sums[i]);
  }
  volatile float kept = fold_add(sums[0]);
  (void)kept;
}

// Four streams: one alone leaves memory idle while its prefetcher crosses a page.
static float peak_read(const std::byte* data, std::int64_t bytes) noexcept {
  constexpr std::int64_t kAhead = 2048;  // bytes
  const std::int64_t quarter = bytes / 4;
  V16 sums[4] = {zero(), zero(), zero(), zero()};
  for (std::int64_t at = 0; at < quarter; at += 64) {
#pragma GCC unroll 4
    for (int stream = 0; stream < 4; ++stream) {
      const std::byte* from = data + stream * quarter + at;
      __builtin_prefetch(from + kAhead);
      sums[stream] = add(sums[stream], load(reinterpret_cast<const float*>(from)));
    }
  }
  return fold_add(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
}
