// Bytes of a connection as HTTP requests: however they arrive, the same requests come out, and none
// is larger than the limits. When a mistake is noticed may depend on what has arrived.
//
// Input: one byte for the pieces, then what a client sends.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "server/request_reader.h"

namespace {

constexpr sluice::ReaderLimits kLimits{.header_bytes_max = 512, .body_bytes_max = 256};
constexpr std::size_t kRequestsMax = 64;

// One line for each request, with everything a handler sees but random ids.
std::vector<std::string> read(std::string_view bytes, std::size_t step) {
  using Step = sluice::RequestReader::Step;
  sluice::BodyBudget budget(kLimits.body_bytes_max);
  sluice::RequestReader reader(kLimits, budget);
  std::vector<std::string> requests;
  std::size_t at = 0;
  while (requests.size() < kRequestsMax) {
    const Step found = reader.advance();
    if (found == Step::failed) {
      if (reader.error().message.empty() || reader.request().id.empty()) {
        std::abort();
      }
      return requests;
    }
    if (found == Step::headers) {
      const sluice::HttpRequest& request = reader.request();
      if (request.id.empty() || request.path.size() > kLimits.header_bytes_max) {
        std::abort();
      }
      continue;
    }
    if (found == Step::done) {
      const sluice::HttpRequest& request = reader.request();
      if (request.body.size() > kLimits.body_bytes_max) {
        std::abort();
      }
      std::string line = request.method + ' ' + request.target + ' ' + request.path;
      for (const auto& header : request.headers) {
        line += '\n';
        line.append(header.name_string().data(), header.name_string().size());
        line += ": ";
        line.append(header.value().data(), header.value().size());
      }
      requests.push_back(line + "\n\n" + request.body + (reader.keep_alive() ? "+" : "-"));
      reader.next();
      continue;
    }
    if (at == bytes.size()) {
      return requests;
    }
    const std::size_t size = std::min(step, bytes.size() - at);
    reader.append(bytes.data() + at, size);
    at += size;
  }
  return requests;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<std::string> whole = read(bytes, bytes.size() + 1);
  if (read(bytes, 1) != whole || read(bytes, std::size_t{2} + data[0]) != whole) {
    std::abort();
  }
  return 0;
}
