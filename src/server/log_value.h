// Log lines are a word and then name=value pairs, so that programs can read them.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// `text` as a value of such a line: in quotes when it is empty or has a blank, a quote, a backslash
// or an equals sign.
std::string log_value(std::string_view text);

}  // namespace sluice
