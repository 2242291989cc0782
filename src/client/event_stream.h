// Takes an event stream (text/event-stream, WHATWG HTML 9.2) apart, whatever pieces it comes in:
// LF, CR and CRLF end lines, several data lines are one event, comments and other fields are passed
// over. An event that the stream's end cuts off is none.
//
// Thread rule: one owner.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice {

class EventStream {
 public:
  // No line and no event may be longer.
  explicit EventStream(std::size_t event_bytes_max) : event_bytes_max_(event_bytes_max) {}

  // Calls on_data for every event that `bytes` completes. False when on_data returned false: the
  // rest was not looked at. Error resource_exhausted: too long.
  Result<bool> feed(std::string_view bytes, const std::function<bool(std::string_view)>& on_data);

 private:
  Result<void> append_to_line(std::string_view bytes);
  // What the finished line means; false when on_data said so.
  bool end_line(const std::function<bool(std::string_view)>& on_data);

  std::size_t event_bytes_max_;
  std::string line_;      // without its end, as far as it has come
  std::string data_;      // of the event, each line with a LF after it
  bool skip_lf_ = false;  // the line ended with CR: a LF belongs to it
};

}  // namespace sluice
