// exp((score - best) / temperature) for a whole vocabulary.
//
// Why not kernels::exp_f32: it is built on FMA, which at the baseline instruction set is a library
// call (measured 60 ns per value, 15 ms per token of a 248,320-id vocabulary). This one uses
// multiplications and additions only, so the compiler vectorises it for any CPU with the same bits;
// the constants are those of kernels/exp_constants.h. Error: within 3 ulp.
//
// Thread rule: pure functions.
#pragma once

#include <span>

namespace sluice {

struct WeightScale {
  float best;         // the highest score, finite
  float temperature;  // >= kTemperatureMin
};

// In [0, 1]; 1 for the best score itself, 0 where the exponent is below -87 (also for -infinity).
float softmax_weight(float score, const WeightScale& scale);

// weights[i] = softmax_weight(scores[i]), the same bits. Equal sizes; may not overlap.
void softmax_weights(std::span<const float> scores, const WeightScale& scale,
                     std::span<float> weights);

}  // namespace sluice
