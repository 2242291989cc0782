#include "apps/embedded_model.h"

#include <fmt/format.h>

#include <array>
#include <system_error>

namespace sluice::apps {
namespace fs = std::filesystem;

Result<fs::path> find_embedded_model() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const std::array<fs::path, 2> places{
      fs::path(SLUICE_SOURCE_DIR) / "models/tiny",
      program.parent_path().parent_path() / "share/sluice/models/tiny",
  };
  for (const fs::path& place : places) {
    if (fs::exists(place / "config.json", ignored)) {
      return place;
    }
  }
  return fail(ErrorCode::not_found,
              fmt::format("the embedded model is neither at {} nor at {}: name a model directory",
                          places[0].string(), places[1].string()));
}

}  // namespace sluice::apps
