// Media inside a request: `data:` URIs (RFC 2397) and bare base64. Pure text work; what the bytes
// are is for picture_type.h to say.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice {

struct EmbeddedMedia {
  std::string declared_type;  // "image/png", lower case; empty when none is declared
  std::vector<std::byte> bytes;
};

// Whether the text begins like a data URI, in any case of letters.
bool is_data_uri(std::string_view text);

// A data URI, else base64. Errors: invalid_argument (no base64, cut off, nothing inside; names the
// place), unsupported (a data URI that is not base64), resource_exhausted (over bytes_max).
Result<EmbeddedMedia> read_embedded_media(std::string_view text, std::size_t bytes_max);

// Base64 of either alphabet (RFC 4648 sections 4 and 5), as clients send it: white space anywhere
// and percent-encoded characters are accepted, padding may be missing, but what is there must be
// right.
Result<std::vector<std::byte>> decode_base64(std::string_view text, std::size_t bytes_max);

}  // namespace sluice
