// The rotary-position part of the text config. Liberal about where a value is written (as exporters
// are): rope_parameters or rope_scaling, `rope_type` or `type`, theta and factor repeated one level
// up. Strict about meaning: repeats must agree, any scaling or unknown key is an Error.
// Private to weights/.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "weights/config_object.h"
#include "weights/model_config.h"

namespace sluice {

Result<RopeParameters> read_rope_parameters(const ConfigObject& text, std::int64_t head_dim);

}  // namespace sluice
