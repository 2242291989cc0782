#include "api/fields/path_map.h"

#include <utility>

namespace sluice {

void PathMap::add(std::string translated, std::string source) {
  sources_.insert_or_assign(std::move(translated), std::move(source));
}

std::string PathMap::source_of(std::string_view path) const {
  std::size_t end = path.size();
  while (end != std::string_view::npos && end > 0) {
    if (const auto found = sources_.find(path.substr(0, end)); found != sources_.end()) {
      return found->second + std::string(path.substr(end));
    }
    end = path.find_last_of(".[", end - 1);
  }
  return std::string(path);
}

}  // namespace sluice
