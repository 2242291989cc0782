// What earlier responses may lend to a new request, as far as its client may see them.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <optional>
#include <string_view>

namespace sluice {

class ResponseArchive {
 public:
  ResponseArchive() = default;
  ResponseArchive(const ResponseArchive&) = delete;
  ResponseArchive& operator=(const ResponseArchive&) = delete;
  virtual ~ResponseArchive() = default;

  // Input and output items of the response and of all before it, oldest first.
  virtual std::optional<boost::json::array> conversation(std::string_view response_id) const = 0;

  // One input or output item.
  virtual std::optional<boost::json::object> item(std::string_view item_id) const = 0;
};

}  // namespace sluice
