// Asks an HTTP/1.1 server over one kept-alive connection: whole replies and event streams, plain or
// over TLS (certificates are verified against the system's, or SSL_CERT_FILE's).
//
// Every call blocks. Thread rule: one owner per object; `stop` may be set from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice {

struct ServerUrl {
  bool tls = false;
  std::string host;  // an IPv6 address without its brackets
  std::string port;
  std::string path;  // "" or "/prefix": goes before the path of every request
};

// "http://HOST[:PORT][/PREFIX]", or https. A trailing "/v1" is dropped: requests name it.
// Error invalid_argument names the text.
Result<ServerUrl> parse_server_url(std::string_view text);

// Errors of all calls: io (no connection, hung up), deadline (a time limit of Options), cancelled
// (stop), resource_exhausted (more than a limit below), corrupt_data (not what HTTP or an event
// stream looks like). After an error the next call connects anew.
class HttpClient {
 public:
  static constexpr std::size_t kReplyBytesMax = std::size_t{64} << 20;  // of a whole reply
  static constexpr std::size_t kStreamBytesMax = std::size_t{1} << 30;  // of an event stream
  static constexpr std::size_t kEventBytesMax = std::size_t{4} << 20;   // of one event

  struct Options {
    double connect_seconds = 10;              // name, connection and TLS together
    double silence_seconds = 600;             // to send a request; then between bytes
    std::string api_key = {};                 // sent as "Authorization: Bearer ..." unless empty
    const std::atomic<bool>* stop = nullptr;  // once true, calls end within 100 ms
  };
  struct Reply {
    int status = 0;
    std::string body;
  };
  // `data` of one event, valid during the call. False hangs up: no error, the rest is not read.
  using OnEvent = std::function<bool(std::string_view data)>;

  HttpClient(ServerUrl url, Options options);
  ~HttpClient();
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;

  Result<Reply> get(const std::string& path);
  Result<Reply> post(const std::string& path, const std::string& json);
  // Each event as it arrives, but for "[DONE]". The body is filled only when the status is not 200;
  // a 200 that is no event stream is Error corrupt_data.
  Result<Reply> post_stream(const std::string& path, const std::string& json,
                            const OnEvent& on_event);

 private:
  class Connection;
  struct Request;

  Result<Reply> ask(const Request& request, const OnEvent* on_event);

  ServerUrl url_;
  Options options_;
  std::unique_ptr<Connection> connection_;  // none before the first call and after an error
};

}  // namespace sluice
