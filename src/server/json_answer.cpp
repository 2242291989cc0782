#include "server/json_answer.h"

#include <utility>

#include "api/fields/json_text.h"
#include "server/error_map.h"

namespace sluice {

void reply_json(const std::shared_ptr<Exchange>& exchange, const ApiResult<JsonAnswer>& answer,
                ApiDialect dialect) {
  if (!answer) {
    exchange->reply(error_response(dialect, answer.error(), exchange->request().id));
    return;
  }
  HttpResponse response{.body = to_json(answer->body)};
  add_ignored(answer->ignored, response);
  exchange->reply(std::move(response));
}

std::string ignored_header(const std::vector<std::string>& paths) {
  constexpr std::size_t kHeaderBytesMax = 1024;
  std::string header;
  for (const std::string& path : paths) {
    std::string printable;
    for (const char c : path) {
      const bool plain = c > 0x20 && c < 0x7F && c != ',';
      printable += plain ? c : '?';
    }
    const std::size_t size = header.size() + printable.size() + (header.empty() ? 0 : 1);
    if (size > kHeaderBytesMax) {
      break;
    }
    header += (header.empty() ? "" : ",") + printable;
  }
  return header;
}

void add_ignored(const std::vector<std::string>& paths, HttpResponse& response) {
  if (!paths.empty()) {
    response.headers.emplace_back("x-ignored-params", ignored_header(paths));
  }
}

}  // namespace sluice
