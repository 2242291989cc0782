// Private to text/: the small files of a model directory that may be absent.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include <boost/json/object.hpp>

#include "base/result.h"

namespace sluice {

// No value when the file does not exist. Other errors as read_text_file().
Result<std::optional<std::string>> read_optional_text_file(const std::filesystem::path& path,
                                                           std::size_t bytes_max);

// The same for a file that must hold one JSON object; anything else is corrupt_data.
Result<std::optional<boost::json::object>> read_optional_json_object(
    const std::filesystem::path& path, std::size_t bytes_max);

}  // namespace sluice
