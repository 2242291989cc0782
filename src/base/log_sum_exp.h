// log(sum(exp(scores))) in double: the logarithm of what a softmax divides by. For measures such as
// perplexity and KL, not for sampling.
//
// Thread rule: a pure function.
#pragma once

#include <span>

namespace sluice {

// Not empty. Not a number where a score is none.
double log_sum_exp(std::span<const float> scores);

}  // namespace sluice
