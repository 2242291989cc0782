// Event streams of servers: the same events however the bytes are cut, none longer than the limit.
//
// The first byte sets the limit of an event and where the stream is cut, the rest is the stream.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "client/event_stream.h"

namespace sluice {
namespace {

constexpr std::size_t kLimits[] = {16, 64, 1024, std::size_t{1} << 20};

struct Taken {
  std::vector<std::string> events;
  bool is_too_long = false;

  bool operator==(const Taken&) const = default;
};

// The events of the stream, fed in pieces of `piece` bytes, ended after `events_max`.
Taken take(std::string_view stream, std::size_t limit, std::size_t piece, std::size_t events_max) {
  EventStream events(limit);
  Taken taken;
  while (!stream.empty()) {
    const std::size_t bytes = std::min(piece, stream.size());
    const Result<bool> more = events.feed(stream.substr(0, bytes), [&](std::string_view data) {
      SLUICE_CHECK(data.size() <= limit);
      SLUICE_CHECK(data.find('\r') == std::string_view::npos);
      taken.events.emplace_back(data);
      return taken.events.size() < events_max;
    });
    if (!more) {
      SLUICE_CHECK(more.error().code == ErrorCode::resource_exhausted);
      taken.is_too_long = true;
      return taken;
    }
    if (!*more) {
      SLUICE_CHECK(taken.events.size() == events_max);
      return taken;
    }
    stream.remove_prefix(bytes);
  }
  return taken;
}

// Every line of an event written with its field comes back as that event.
void check_written_again(const Taken& taken) {
  std::string stream;
  for (const std::string& event : taken.events) {
    std::string_view rest = event;
    while (true) {
      const std::size_t end = rest.find('\n');
      stream.append("data: ").append(rest.substr(0, end)).append("\n");
      if (end == std::string_view::npos) {
        break;
      }
      rest.remove_prefix(end + 1);
    }
    stream += "\n";
  }
  const std::size_t all = stream.size() + 1;
  SLUICE_CHECK(take(stream, all, all, all).events == taken.events);
}

void run(std::string_view input) {
  if (input.empty()) {
    return;
  }
  const auto mode = static_cast<unsigned char>(input.front());
  const std::string_view stream = input.substr(1);
  const std::size_t limit = kLimits[mode % 4];
  const std::size_t all = stream.size() + 1;
  const Taken whole = take(stream, limit, all, all);
  SLUICE_CHECK(take(stream, limit, 1, all) == whole);
  SLUICE_CHECK(take(stream, limit, 1 + mode / 4, all) == whole);
  if (!whole.events.empty()) {
    Taken first = take(stream, limit, 1 + mode / 4, 1);
    SLUICE_CHECK(first.events.front() == whole.events.front());
  }
  check_written_again(whole);
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
