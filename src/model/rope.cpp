#include "model/rope.h"

#include "kernels/scalar_math.h"

namespace sluice {

Rope::Rope(const RopeParameters& parameters) {
  const std::int64_t half = parameters.rotary_dim / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const double exponent =
        -2.0 * static_cast<double>(i) / static_cast<double>(parameters.rotary_dim);
    inverse_frequency_.push_back(kernels::power_f64(parameters.rope_theta, exponent));
    // Every third frequency from 1 belongs to height, from 2 to width, as long as their sections
    // reach; all others to time.
    const std::int64_t candidate = i % 3;
    const bool taken =
        candidate != 0 && i < 3 * parameters.mrope_section[static_cast<std::size_t>(candidate)];
    axis_.push_back(taken ? candidate : 0);
  }
}

void Rope::tables(std::span<const std::int32_t> positions, std::int64_t rows, float* cos,
                  float* sin) const {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < half(); ++i) {
      const auto frequency = static_cast<std::size_t>(i);
      const auto at = static_cast<std::size_t>(axis_[frequency] * rows + row);
      const double angle =
          static_cast<double>(positions[at]) * static_cast<double>(inverse_frequency_[frequency]);
      const kernels::SinCos value = kernels::sincos_f64(angle);
      cos[row * half() + i] = value.cos;
      sin[row * half() + i] = value.sin;
    }
  }
}

}  // namespace sluice
