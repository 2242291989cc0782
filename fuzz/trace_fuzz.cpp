// Recorded loads (`sluice bench --trace`): any text is a plan that can be replayed in the order of
// its times, or an Error that names file and line.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "load/trace.h"

namespace sluice::load {
namespace {

constexpr std::string_view kName = "fuzz";

// Replays a conversation to its end; its requests.
std::size_t replay(Conversation& conversation) {
  std::size_t requests = 0;
  double last = 0.0;
  while (!conversation.is_over()) {
    const double at = conversation.next_at().value_or(-1.0);
    SLUICE_CHECK(at >= last);
    last = at;
    const boost::json::object body = conversation.next_body();
    SLUICE_CHECK(!body.at("messages").as_array().empty());
    SLUICE_CHECK(!body.contains("model") && !body.contains("stream"));
    conversation.take(nullptr);
    ++requests;
  }
  return requests;
}

void run(std::string_view input) {
  Result<Trace> trace = parse_trace(input, kName);
  if (!trace) {
    SLUICE_CHECK(trace.error().code == ErrorCode::invalid_argument);
    SLUICE_CHECK(trace.error().message.starts_with(kName));
    SLUICE_CHECK(trace.error().message.size() < 1000);
    return;
  }
  std::size_t requests = 0;
  double last = 0.0;
  for (const PlannedConversation& planned : trace->conversations) {
    SLUICE_CHECK(planned.at.has_value());
    SLUICE_CHECK(*planned.at >= last);
    SLUICE_CHECK(planned.at == planned.conversation->next_at());
    last = *planned.at;
    const std::size_t replayed = replay(*planned.conversation);
    SLUICE_CHECK(replayed >= 1);
    requests += replayed;
  }
  SLUICE_CHECK(requests == trace->requests);
}

}  // namespace
}  // namespace sluice::load

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::load::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
