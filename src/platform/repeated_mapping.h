// Read-only memory of any length that repeats one piece of bytes: only the piece takes physical
// pages. For weights whose values do not matter. Move-only; the bytes live as long as the object.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"

namespace sluice {

class RepeatedMapping {
 public:
  RepeatedMapping() = default;
  RepeatedMapping(RepeatedMapping&& other) noexcept;
  RepeatedMapping& operator=(RepeatedMapping&& other) noexcept;
  ~RepeatedMapping();

  // piece: a positive multiple of the page size (the caller's duty, checked). At least `bytes`
  // bytes are mapped, in whole pieces. Error resource_exhausted when the system refuses.
  static Result<RepeatedMapping> make(std::span<const std::byte> piece, std::size_t bytes);

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit RepeatedMapping(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace sluice
