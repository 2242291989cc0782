#include "text/text_files.h"

#include <utility>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "platform/mapped_file.h"

namespace sluice {

Result<std::optional<std::string>> read_optional_text_file(const std::filesystem::path& path,
                                                           std::size_t bytes_max) {
  Result<std::string> content = read_text_file(path, bytes_max);
  if (content) {
    return std::optional(std::move(*content));
  }
  if (content.error().code == ErrorCode::not_found) {
    return std::optional<std::string>();
  }
  return std::unexpected(std::move(content).error());
}

Result<std::optional<boost::json::object>> read_optional_json_object(
    const std::filesystem::path& path, std::size_t bytes_max) {
  const std::optional<std::string> text = SLUICE_TRY(read_optional_text_file(path, bytes_max));
  if (!text) {
    return std::optional<boost::json::object>();
  }
  boost::system::error_code error;
  boost::json::value value = boost::json::parse(*text, error);
  if (error) {
    return fail(ErrorCode::corrupt_data, path.string() + ": not JSON: " + error.message(),
                path.string());
  }
  if (!value.is_object()) {
    return fail(ErrorCode::corrupt_data, path.string() + ": want a JSON object", path.string());
  }
  return std::optional(std::move(value.get_object()));
}

}  // namespace sluice
