// JSON as text, without a tree: numbers of any size stay what they are. The spacing is the one of
// the arguments that this server writes: {"a": 1, "b": [2, 3]}.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {

// Appends the inside of a JSON string: quotes, backslashes and control characters escaped, all
// other bytes as they are.
void append_json_escaped(std::string& out, std::string_view text);

std::string json_string(std::string_view text);

// The JSON value that `text` is, with the spacing above. White space around it is allowed.
std::optional<std::string> respace_json(std::string_view text);

// The members of the JSON object that `text` is, in order: keys and values as JSON.
using JsonMembers = std::vector<std::pair<std::string, std::string>>;
std::optional<JsonMembers> read_json_members(std::string_view text);

// respace_json() for a literal of Python: single quotes, True, False, None, tuples, trailing
// commas.
std::optional<std::string> json_of_python(std::string_view text);

// -?(0|[1-9][0-9]*), and that with a fraction or an exponent.
bool is_json_integer(std::string_view text);
bool is_json_number(std::string_view text);

}  // namespace sluice
