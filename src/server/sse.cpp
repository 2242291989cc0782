#include "server/sse.h"

#include "base/check.h"

namespace sluice {

std::string sse_text(const std::vector<SseEvent>& events) {
  std::string text;
  for (const SseEvent& event : events) {
    SLUICE_DCHECK(event.data.find('\n') == std::string::npos);
    if (!event.name.empty()) {
      text += "event: " + event.name + "\n";
    }
    text += "data: ";
    text += event.data;
    text += "\n\n";
  }
  return text;
}

HttpResponse sse_head() {
  return {.status = 200,
          .headers = {{"Cache-Control", "no-cache, no-transform"}, {"X-Accel-Buffering", "no"}},
          .content_type = "text/event-stream; charset=utf-8"};
}

}  // namespace sluice
