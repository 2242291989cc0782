// The functions a request declares, as the parser of calls needs them: names, and the types of
// their parameters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tools/parameter_type.h"

namespace sluice {

struct ToolParameter {
  std::string name;
  ParameterType type;
  bool required = false;
};

struct Tool {
  std::string name;
  std::vector<ToolParameter> parameters;
  bool open = false;    // others than these are fine too
  bool strict = false;  // calls follow the schema wherever a grammar holds

  // Null when the schema does not name it.
  const ToolParameter* find(std::string_view parameter) const;
};

// Read only once made; shared by the parsers of all answers to a request.
struct ToolSet {
  std::vector<Tool> tools;
  bool fence_guard = true;  // openers inside ``` fences are text, but for the model's own token

  const Tool* find(std::string_view tool) const;
};

}  // namespace sluice
