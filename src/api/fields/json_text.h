// JSON text in and out, with the tolerance a server of agents needs and no more.
//
// Parsing: a byte order mark is skipped; the last of duplicate keys wins; unpaired UTF-16 escapes
// become U+FFFD (one bad escape in a history would otherwise make every later turn fail); numbers
// are rounded correctly; depth is at most kJsonDepthMax. Comments, trailing commas, trailing text
// and bytes that are not UTF-8 are refused.
#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/api_error.h"

namespace sluice {

inline constexpr std::size_t kJsonDepthMax = 512;

struct JsonLimits {
  std::size_t parts_max = SIZE_MAX;    // strings, keys, arrays and objects
  std::size_t scalars_max = SIZE_MAX;  // numbers, true, false, null
};

// Of what clients send: what is made of a body takes up to half a KiB for each part.
inline constexpr JsonLimits kBodyJsonLimits{.parts_max = std::size_t{1} << 20,
                                            .scalars_max = std::size_t{1} << 24};

// Errors: invalid_json with the byte offset; request_too_large (beyond the limits). The text is
// changed in place (escapes are repaired).
ApiResult<boost::json::value> parse_json(std::string text, const JsonLimits& limits = {});

std::string to_json(const boost::json::value& value);

// Replaces every \uXXXX escape that is half of a surrogate pair, and has no other half, by \ufffd.
// The length of the text does not change.
void repair_surrogate_escapes(std::string& text);

// Replaces every byte sequence that is not UTF-8 by U+FFFD: for bytes of single tokens, which may
// be part of a character, where JSON wants text.
std::string replace_invalid_utf8(std::string_view bytes);

}  // namespace sluice
