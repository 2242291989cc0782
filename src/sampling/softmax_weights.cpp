#include "sampling/softmax_weights.h"

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "kernels/exp_constants.h"

namespace sluice {
namespace {

// Branch-free, so that a loop over it becomes vector code. x <= 0, not NaN.
inline float exp_nonpositive(float x) {
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to the nearest integer
  const float clamped = x < kernels::kExpFlushBelow ? kernels::kExpFlushBelow : x;
  const float n = (clamped * kernels::kLog2E + kMagic) - kMagic;
  const float r = (clamped - n * kernels::kLn2High) - n * kernels::kLn2Low;
  float p = kernels::kExpPoly[0];
  p = p * r + kernels::kExpPoly[1];
  p = p * r + kernels::kExpPoly[2];
  p = p * r + kernels::kExpPoly[3];
  p = p * r + kernels::kExpPoly[4];
  p = p * r + kernels::kExpPoly[5];
  p = (p * (r * r) + r) + 1.0F;
  const std::int32_t exponent = (static_cast<std::int32_t>(n) + 127) << 23;
  const float value = p * std::bit_cast<float>(exponent);
  return x < kernels::kExpFlushBelow ? 0.0F : value;
}

}  // namespace

float softmax_weight(float score, const WeightScale& scale) {
  return exp_nonpositive((score - scale.best) / scale.temperature);
}

void softmax_weights(std::span<const float> scores, const WeightScale& scale,
                     std::span<float> weights) {
  SLUICE_CHECK(scores.size() == weights.size());
  const float* const in = scores.data();
  float* const __restrict out = weights.data();
  const float best = scale.best;
  const float temperature = scale.temperature;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    out[i] = exp_nonpositive((in[i] - best) / temperature);
  }
}

}  // namespace sluice
