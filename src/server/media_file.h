// file: URLs of an operator's media folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice {

// The file that "file:///srv/media/a.png" names, if `root` (an absolute path) is above it. The
// kernel resolves the path and refuses every way out of the root, links included. Errors:
// unsupported (no root, another host, or a path that is not below it), not_found,
// resource_exhausted (more than bytes_max), invalid_argument (no regular file), io.
Result<std::vector<std::byte>> read_media_file(std::string_view url,
                                               const std::filesystem::path& root,
                                               std::size_t bytes_max);

}  // namespace sluice
