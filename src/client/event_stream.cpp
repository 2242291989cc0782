#include "client/event_stream.h"

#include <fmt/format.h>

#include <utility>

namespace sluice {

Result<bool> EventStream::feed(std::string_view bytes,
                               const std::function<bool(std::string_view)>& on_data) {
  while (!bytes.empty()) {
    if (skip_lf_ && bytes.front() == '\n') {
      bytes.remove_prefix(1);
    }
    skip_lf_ = false;
    const std::size_t end = bytes.find_first_of("\r\n");
    SLUICE_TRY(append_to_line(bytes.substr(0, end)));
    if (end == std::string_view::npos) {
      break;
    }
    skip_lf_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (!end_line(on_data)) {
      return false;
    }
  }
  return true;
}

Result<void> EventStream::append_to_line(std::string_view bytes) {
  if (line_.size() + data_.size() + bytes.size() > event_bytes_max_) {
    return fail(ErrorCode::resource_exhausted,
                fmt::format("an event has more than {} bytes", event_bytes_max_));
  }
  line_ += bytes;
  return {};
}

bool EventStream::end_line(const std::function<bool(std::string_view)>& on_data) {
  constexpr std::string_view kData = "data";
  const std::string line = std::exchange(line_, {});
  if (line.empty()) {
    std::string data = std::exchange(data_, {});
    if (data.empty()) {
      return true;
    }
    data.pop_back();
    return on_data(data);
  }
  const std::size_t colon = line.find(':');
  if (std::string_view(line).substr(0, colon) == kData) {
    std::string_view value =
        colon == std::string::npos ? std::string_view() : std::string_view(line).substr(colon + 1);
    if (value.starts_with(' ')) {
      value.remove_prefix(1);
    }
    data_.append(value).push_back('\n');
  }
  return true;
}

}  // namespace sluice
