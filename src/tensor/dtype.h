// Element types of tensors, as safetensors spells them. No arithmetic here.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace sluice {

enum class DType { f64, f32, f16, bf16, f8_e4m3, i64, i32, i16, i8, u8, boolean };

// Bytes of one element.
std::size_t dtype_bytes(DType dtype);

// "BF16", "F8_E4M3", ... as in a safetensors header.
std::string_view dtype_name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);

}  // namespace sluice
