// Ids of the items of a response. They hold the id of the response itself, so that an item is
// found by its id alone:  resp_7f..2a -> msg_7f..2a_0 (output), item_7f..2a_in_0 (input).
#pragma once

#include <boost/json/array.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

inline constexpr std::string_view kResponseIdPrefix = "resp_";

std::string output_item_id(std::string_view prefix, std::string_view response_id,
                           std::size_t index);

// Gives an id to every item that has none.
void name_input_items(std::string_view response_id, boost::json::array& items);

// The response an item with such an id belongs to.
std::optional<std::string> response_of_item(std::string_view item_id);

}  // namespace sluice
