// What kind of file some bytes are, by their first bytes alone: a declared type is never trusted.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace sluice {

enum class PictureType { png, jpeg, webp, gif, bmp };

std::string_view to_string(PictureType type);

std::optional<PictureType> sniff_picture_type(std::span<const std::byte> bytes);

// A name for the other kinds of files that people send ("a HEIC or AVIF picture", "a PDF
// document"), for error messages; empty when not known.
std::string_view sniff_other_type(std::span<const std::byte> bytes);

}  // namespace sluice
