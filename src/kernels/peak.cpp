#include "kernels/peak.h"

#if defined(__x86_64__)

#if !defined(__clang__)
// GCC 12 reports the "undefined" pass-through operands of its own AVX-512 intrinsics (GCC bug
// 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <immintrin.h>

#include "kernels/amx/table.h"
#include "kernels/amx/tile_config.h"
#include "kernels/avx2/table.h"
#include "kernels/avx512/table.h"

// Independent sums of sixteen lanes: enough to hide four cycles of latency on two units, few enough
// for the registers.
// clang-format off
#include "kernels/avx2/begin.h"
#include "kernels/avx2/vec.inl"
constexpr int kPeakSums = 5;
#include "kernels/simd/peak.inl"
#include "kernels/avx2/end.h"

#undef SLUICE_INLINE
#include "kernels/avx512/begin.h"
#include "kernels/avx512/vec.inl"
constexpr int kPeakSums = 12;
#include "kernels/simd/peak.inl"
#include "kernels/avx512/end.h"

#include "kernels/amx/begin.h"
#include "kernels/amx/peak.inl"
#include "kernels/amx/end.h"
// clang-format on

#endif

namespace sluice::kernels {
namespace {

// What code without intrinsics reaches: the widest that the baseline build makes of it.
void peak_portable(std::int64_t rounds) noexcept {
  volatile float half = 0.5F;
  const float x = half;
  float sums[32] = {};
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (float& sum : sums) {
      sum = sum * x + x;
    }
  }
  for (const float sum : sums) {
    half = sum;
  }
}

float read_portable(const std::byte* data, std::int64_t bytes) noexcept {
  const auto* values = reinterpret_cast<const std::uint64_t*>(data);
  std::uint64_t sums[4] = {};
  const std::int64_t quarter = bytes / 4 / 8;
  for (std::int64_t i = 0; i < quarter; ++i) {
    for (int stream = 0; stream < 4; ++stream) {
      sums[stream] += values[stream * quarter + i];
    }
  }
  return static_cast<float>(sums[0] + sums[1] + sums[2] + sums[3]);
}

}  // namespace

PeakLoops peak_loops(const KernelTable& table, const CpuFeatures& cpu) {
#if defined(__x86_64__)
  // Operations of a tile product: 16 x 16 sums of 32 (bf16) or 64 (int8) products, four a round.
  constexpr double kBf16Round = 4 * 2.0 * 16 * 16 * 32;
  constexpr double kInt8Round = 4 * 2.0 * 16 * 16 * 64;
  if (&table == amx::table()) {
    PeakLoops loops{.product = {"amx bf16", kBf16Round, amx::peak_bf16},
                    .product_int8 = std::nullopt,
                    .read = avx512::peak_read};
    if (cpu.amx_int8) {
      loops.product_int8 = PeakLoop{"amx int8", kInt8Round, amx::peak_int8};
    }
    return loops;
  }
  if (&table == avx512::table()) {
    return {.product = {"avx512 fma", 2.0 * 16 * avx512::kPeakSums, avx512::peak_fma},
            .product_int8 = std::nullopt,
            .read = avx512::peak_read};
  }
  if (&table == avx2::table()) {
    return {.product = {"avx2 fma", 2.0 * 16 * avx2::kPeakSums, avx2::peak_fma},
            .product_int8 = std::nullopt,
            .read = avx2::peak_read};
  }
#endif
  return {.product = {"portable multiply-add", 2.0 * 32, peak_portable},
          .product_int8 = std::nullopt,
          .read = read_portable};
}

}  // namespace sluice::kernels
