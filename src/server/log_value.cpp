#include "server/log_value.h"

namespace sluice {

std::string log_value(std::string_view text) {
  if (!text.empty() && text.find_first_of(" \"\\=") == std::string_view::npos) {
    return std::string(text);
  }
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
    }
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace sluice
