// Calls written as JSON inside <tool_call>: {"name": "f", "arguments": {...}}, the Hermes form.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "api/tools/tool_set.h"

namespace sluice {

// Finds the end of a JSON object that comes in pieces, without looking at any byte twice.
class JsonObjectEnd {
 public:
  // `text` begins with '{' and is what the last call got, or that and more. The size of the object,
  // once it is complete.
  std::optional<std::size_t> find(std::string_view text);

 private:
  std::size_t at_ = 0;
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

struct JsonCall {
  std::string name;
  std::string arguments;  // the text of a JSON object
};

// Nothing when it is not an object with the name of a declared tool and, if any, an object of
// arguments.
std::optional<JsonCall> read_json_call(std::string_view text, const ToolSet& tools);

}  // namespace sluice
