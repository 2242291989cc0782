// A non-owning, read-only look at a tensor: dtype, shape, bytes. Row-major, contiguous, perhaps
// unaligned (a file gives no alignment: copy elements out with memcpy).
// The owner (a mapped file, a buffer) must outlive the view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace sluice {

using Shape = std::vector<std::int64_t>;

// "[3, 4]", as error messages print it.
std::string to_string(const Shape& shape);

// Product of the axes; 1 for a scalar. The axes of a Shape are >= 0 and the product fits
// (whoever made the Shape checked it).
std::int64_t element_count(const Shape& shape);

struct TensorView {
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;
};

}  // namespace sluice
