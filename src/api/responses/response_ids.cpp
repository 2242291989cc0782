#include "api/responses/response_ids.h"

#include <fmt/format.h>

#include <boost/json/object.hpp>

namespace sluice {
namespace {

std::string_view bare(std::string_view response_id) {
  return response_id.substr(kResponseIdPrefix.size());
}

}  // namespace

std::string output_item_id(std::string_view prefix, std::string_view response_id,
                           std::size_t index) {
  return fmt::format("{}{}_{}", prefix, bare(response_id), index);
}

void name_input_items(std::string_view response_id, boost::json::array& items) {
  std::size_t index = 0;
  for (boost::json::value& value : items) {
    if (value.is_object()) {
      boost::json::value& id = value.get_object()["id"];
      if (!id.is_string()) {
        id = fmt::format("item_{}_in_{}", bare(response_id), index);
      }
    }
    ++index;
  }
}

std::optional<std::string> response_of_item(std::string_view item_id) {
  const std::size_t begin = item_id.find('_');
  if (begin == std::string_view::npos) {
    return std::nullopt;
  }
  const std::size_t end = item_id.find('_', begin + 1);
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  return fmt::format("{}{}", kResponseIdPrefix, item_id.substr(begin + 1, end - begin - 1));
}

}  // namespace sluice
