#include "platform/memory_use.h"

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace sluice {

std::optional<std::size_t> available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::size_t kibibytes = 0;
  std::string unit;
  while (file >> name >> kibibytes) {
    if (name == "MemAvailable:") {
      return kibibytes * 1024;
    }
    std::getline(file, unit);  // "kB", or nothing
  }
  return std::nullopt;
}

std::size_t peak_resident_bytes() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<std::size_t>(usage.ru_maxrss) * 1024 : 0;
}

}  // namespace sluice
