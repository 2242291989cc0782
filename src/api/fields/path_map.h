// Names of fields for a dialect that is translated into another: what was said about a path of the
// translation is told under the path the client sent.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace sluice {

class PathMap {
 public:
  // "messages[1]" stands for "input[4]", and everything below it likewise.
  void add(std::string translated, std::string source);

  // The path with its longest known beginning replaced.
  std::string source_of(std::string_view path) const;

 private:
  std::map<std::string, std::string, std::less<>> sources_;
};

}  // namespace sluice
