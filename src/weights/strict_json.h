// JSON from files we did not write: config.json and the shard index.
//
// Stricter than the usual parser: a repeated key is an Error (which of the two would count is a
// guess), nesting is bounded, text must be UTF-8, nothing may follow the document. Numbers stay as
// written (int64, uint64 or double); their meaning is the reader's business.
#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice {

inline constexpr std::size_t kConfigDepthMax = 16;

// `where` names the source in messages. Errors: corrupt_data with the byte offset,
// resource_exhausted when memory runs out.
Result<boost::json::value> parse_strict_json(std::string_view text, std::string_view where);

// Text from a file, fit for an error message: control characters escaped, long text cut.
std::string printable(std::string_view text);

}  // namespace sluice
