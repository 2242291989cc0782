#include "media/picture_type.h"

#include <array>

namespace sluice {
namespace {

using namespace std::string_view_literals;

// `second` stands `second_at` bytes from the beginning.
struct Signature {
  std::string_view first;
  std::size_t second_at;
  std::string_view second;
  std::string_view name;
};

bool matches(std::string_view text, const Signature& signature) {
  return text.starts_with(signature.first) && text.size() >= signature.second_at &&
         text.substr(signature.second_at).starts_with(signature.second);
}

std::string_view as_text(std::span<const std::byte> bytes) {
  constexpr std::size_t kLookedAt = 64;
  const std::size_t count = bytes.size() < kLookedAt ? bytes.size() : kLookedAt;
  return {reinterpret_cast<const char*>(bytes.data()), count};
}

constexpr std::array kOthers{
    Signature{""sv, 4, "ftypheic"sv, "a HEIC picture"},
    Signature{""sv, 4, "ftypmif1"sv, "a HEIC or AVIF picture"},
    Signature{""sv, 4, "ftypavif"sv, "an AVIF picture"},
    Signature{""sv, 4, "ftyp"sv, "an MP4 video"},
    Signature{"\x1a\x45\xdf\xa3"sv, 0, ""sv, "a Matroska or WebM video"},
    Signature{"RIFF"sv, 8, "AVI "sv, "an AVI video"},
    Signature{"II*\0"sv, 0, ""sv, "a TIFF picture"},
    Signature{"MM\0*"sv, 0, ""sv, "a TIFF picture"},
    Signature{"\0\0\1\0"sv, 0, ""sv, "a Windows icon"},
    Signature{"\xff\x0a"sv, 0, ""sv, "a JPEG XL picture"},
    Signature{"\0\0\0\x0cJXL "sv, 0, ""sv, "a JPEG XL picture"},
    Signature{"%PDF"sv, 0, ""sv, "a PDF document"},
    Signature{"<svg"sv, 0, ""sv, "an SVG drawing"},
    Signature{"<?xml"sv, 0, ""sv, "an XML document, perhaps an SVG drawing"},
    Signature{"<!DOCTYPE html"sv, 0, ""sv, "an HTML page"},
    Signature{"<html"sv, 0, ""sv, "an HTML page"},
    Signature{"data:"sv, 0, ""sv, "a data URI inside the data"},
};

}  // namespace

std::string_view to_string(PictureType type) {
  switch (type) {
    case PictureType::png:
      return "PNG";
    case PictureType::jpeg:
      return "JPEG";
    case PictureType::webp:
      return "WebP";
    case PictureType::gif:
      return "GIF";
    case PictureType::bmp:
      return "BMP";
  }
  return "unknown";
}

std::optional<PictureType> sniff_picture_type(std::span<const std::byte> bytes) {
  const std::string_view text = as_text(bytes);
  if (text.starts_with("\x89PNG\r\n\x1a\n"sv)) {
    return PictureType::png;
  }
  if (text.starts_with("\xff\xd8\xff"sv)) {
    return PictureType::jpeg;
  }
  if (matches(text, {"RIFF"sv, 8, "WEBP"sv, ""sv})) {
    return PictureType::webp;
  }
  if (text.starts_with("GIF87a"sv) || text.starts_with("GIF89a"sv)) {
    return PictureType::gif;
  }
  if (text.starts_with("BM"sv)) {
    return PictureType::bmp;
  }
  return std::nullopt;
}

std::string_view sniff_other_type(std::span<const std::byte> bytes) {
  const std::string_view text = as_text(bytes);
  for (const Signature& signature : kOthers) {
    if (matches(text, signature)) {
      return signature.name;
    }
  }
  return {};
}

}  // namespace sluice
