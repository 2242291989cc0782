// What the operator sets for requests that leave sampling open, by whether the model thinks first:
// model makers recommend other values for each.
//
//   {"thinking": {"temperature": 1.0, "top_p": 0.95}, "direct": {"temperature": 0.7}}
#pragma once

#include <string>

#include "api/fields/generation_fields.h"

namespace sluice {

struct SamplingDefaults {
  SamplingFields thinking = {};
  SamplingFields direct = {};  // answers without reasoning
};

// The fields are those of requests, but for seed and logit_bias; others are errors.
ApiResult<SamplingDefaults> parse_sampling_defaults(std::string text);

}  // namespace sluice
