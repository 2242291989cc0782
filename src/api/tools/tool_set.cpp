#include "api/tools/tool_set.h"

#include <algorithm>

namespace sluice {
namespace {

template <typename T>
const T* find_named(const std::vector<T>& items, std::string_view name) {
  const auto found = std::ranges::find(items, name, &T::name);
  return found == items.end() ? nullptr : &*found;
}

}  // namespace

const ToolParameter* Tool::find(std::string_view parameter) const {
  return find_named(parameters, parameter);
}

const Tool* ToolSet::find(std::string_view tool) const {
  return find_named(tools, tool);
}

}  // namespace sluice
