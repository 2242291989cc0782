// The JSON header of a safetensors file, both ways. Private to weights/ (and its fuzz target).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tensor/tensor_view.h"
#include "weights/safetensors.h"

namespace sluice {

// Bytes [begin, end) of the data behind the header.
struct HeaderEntry {
  DType dtype = DType::f32;
  Shape shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

using SafetensorsHeader = std::map<std::string, HeaderEntry, std::less<>>;

// Checks everything: dtypes known, byte counts equal to shape x dtype, and the tensors cover the
// data_bytes behind the header exactly, without overlap or hole.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, std::uint64_t data_bytes,
                                                   std::string_view where);

// Size field and JSON of a file with these tensors back to back in map order; ends on a multiple of
// 64 bytes. Errors: invalid_argument for anything that the parser above would refuse.
Result<std::string> make_safetensors_header(const SafetensorsHeader& header);

}  // namespace sluice
