#include "client/http_client.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <cerrno>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "client/event_stream.h"

namespace sluice {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

constexpr std::size_t kHeaderBytesMax = std::size_t{64} << 10;

// The other side ended the connection, or it broke.
bool is_hang_up(const error_code& error) {
  return error == http::error::end_of_stream || error == http::error::partial_message ||
         error == asio::error::eof || error == asio::error::connection_reset ||
         error == asio::error::broken_pipe || error == asio::ssl::error::stream_truncated;
}

ErrorCode code_of(const error_code& error) {
  if (error == http::error::body_limit || error == http::error::header_limit) {
    return ErrorCode::resource_exhausted;
  }
  static const error_code kHttpError = http::error::bad_version;
  return error.category() == kHttpError.category() && !is_hang_up(error) ? ErrorCode::corrupt_data
                                                                         : ErrorCode::io;
}

}  // namespace

struct HttpClient::Request {
  bool is_post = false;
  std::string_view path;
  std::string_view json;
};

// One connection with an I/O context of its own; of no further use after an error.
class HttpClient::Connection {
 public:
  Connection(ServerUrl url, Options options) : url_(std::move(url)), options_(std::move(options)) {}

  Result<void> open() {
    limit_seconds_ = options_.connect_seconds;
    const auto deadline = deadline_after(limit_seconds_);
    tcp::resolver::results_type found;
    SLUICE_TRY(step(deadline, [&](auto done) {
      resolver_.async_resolve(url_.host, url_.port,
                              [&found, done](const error_code& error, const auto& results) {
                                found = results;
                                done(error);
                              });
    }));
    SLUICE_TRY(
        step(deadline, [&](auto done) { asio::async_connect(socket_, found, std::move(done)); }));
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    if (url_.tls) {
      SLUICE_TRY(shake_hands(deadline));
    }
    limit_seconds_ = options_.silence_seconds;
    return {};
  }

  Result<Reply> exchange(const Request& request, const OnEvent* on_event) {
    heard_ = false;
    return stream_ ? exchange_over(*stream_, request, on_event)
                   : exchange_over(socket_, request, on_event);
  }

  // Whether the server takes another request after the last reply.
  bool keeps_alive() const { return keeps_alive_; }

  // Whether the server hung up while nothing was asked. What TLS has to say is seen when it is
  // used.
  bool is_closed() {
    char byte = 0;
    const ssize_t read = recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return read == 0 || (read > 0 && !stream_) ||
           (read < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
  }

  // Whether it hung up before the first byte of the last reply: it may not have seen the request.
  bool hung_up_unheard() const { return hung_up_ && !heard_; }

 private:
  static steady_clock::time_point deadline_after(double seconds) {
    return steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                     std::chrono::duration<double>(seconds));
  }

  Result<void> shake_hands(steady_clock::time_point deadline) {
    context_.set_default_verify_paths();
    stream_.emplace(socket_, context_);
    SSL_set_min_proto_version(stream_->native_handle(), TLS1_2_VERSION);
    SSL_set_tlsext_host_name(stream_->native_handle(), url_.host.c_str());
    stream_->set_verify_mode(asio::ssl::verify_peer);
    stream_->set_verify_callback(asio::ssl::host_name_verification(url_.host));
    return step(deadline, [&](auto done) {
      stream_->async_handshake(asio::ssl::stream_base::client, std::move(done));
    });
  }

  // Runs one operation to its end, or gives it up.
  template <typename Start>
  Result<void> step(steady_clock::time_point deadline, Start start) {
    std::optional<error_code> outcome;
    start([&outcome](const error_code& error, const auto&...) { outcome = error; });
    io_.restart();
    while (!outcome) {
      const bool stopped = options_.stop != nullptr && options_.stop->load();
      const auto left = deadline - steady_clock::now();
      if (stopped || left <= steady_clock::duration::zero()) {
        error_code ignored;
        socket_.close(ignored);
        resolver_.cancel();
        io_.run();  // of a name that is being resolved: until the system gives up
        return stopped ? fail(ErrorCode::cancelled, "it was called off")
                       : fail(ErrorCode::deadline,
                              fmt::format("{}: no answer for {:g} s", name(), limit_seconds_));
      }
      constexpr std::chrono::milliseconds kLook{100};
      io_.run_one_for(options_.stop != nullptr ? std::min<steady_clock::duration>(left, kLook)
                                               : left);
    }
    return judge(*outcome);
  }

  Result<void> judge(const error_code& outcome) {
    if (!outcome || outcome == http::error::need_buffer) {
      return {};
    }
    hung_up_ = is_hang_up(outcome);
    return fail(code_of(outcome),
                fmt::format("{}: {}", name(), hung_up_ ? "the server hung up" : outcome.message()));
  }

  std::string name() const { return fmt::format("{}:{}", host_in_url(), url_.port); }
  std::string host_in_url() const {
    return url_.host.contains(':') ? fmt::format("[{}]", url_.host) : url_.host;
  }

  http::request<http::string_body> message_of(const Request& request, bool streams) const {
    http::request<http::string_body> message(request.is_post ? http::verb::post : http::verb::get,
                                             url_.path + std::string(request.path), 11);
    message.set(http::field::host, name());
    message.set(http::field::user_agent, "sluice");
    message.set(http::field::accept, streams ? "text/event-stream" : "application/json");
    message.set(http::field::accept_encoding, "identity");
    if (!options_.api_key.empty()) {
      message.set(http::field::authorization, "Bearer " + options_.api_key);
    }
    if (request.is_post) {
      message.set(http::field::content_type, "application/json");
      message.body() = request.json;
      message.prepare_payload();
    }
    return message;
  }

  template <typename Stream>
  Result<Reply> exchange_over(Stream& stream, const Request& request, const OnEvent* on_event) {
    const auto message = message_of(request, on_event != nullptr);
    http::response_parser<http::buffer_body> parser;
    parser.header_limit(kHeaderBytesMax);
    parser.body_limit(on_event != nullptr ? kStreamBytesMax : kReplyBytesMax);
    // A server may refuse, and hang up, before it has read the whole request.
    Result<void> sent = step(deadline_after(options_.silence_seconds),
                             [&](auto done) { http::async_write(stream, message, done); });
    if (!sent && !hung_up_) {
      return std::unexpected(std::move(sent).error());
    }
    SLUICE_TRY(step(deadline_after(options_.silence_seconds),
                    [&](auto done) { http::async_read_header(stream, buffer_, parser, done); }));
    heard_ = true;
    Reply reply{.status = static_cast<int>(parser.get().result_int()), .body = {}};
    const bool streams = on_event != nullptr && reply.status == 200;
    if (streams && !parser.get()[http::field::content_type].starts_with("text/event-stream")) {
      return fail(ErrorCode::corrupt_data,
                  fmt::format("{}: the reply has Content-Type '{}', want text/event-stream", name(),
                              std::string_view(parser.get()[http::field::content_type])));
    }
    EventStream events(kEventBytesMax);
    bool wanted = true;
    while (!parser.is_done() && wanted) {
      const std::string_view piece = SLUICE_TRY(read_piece(stream, parser));
      if (streams) {
        wanted = SLUICE_TRY(events.feed(piece, [on_event](std::string_view data) {
          return data == "[DONE]" || (*on_event)(data);
        }));
      } else if (reply.body.size() + piece.size() > kReplyBytesMax) {
        return fail(ErrorCode::resource_exhausted,
                    fmt::format("{}: the reply has more than {} bytes", name(), kReplyBytesMax));
      } else {
        reply.body += piece;
      }
    }
    keeps_alive_ = parser.is_done() && parser.keep_alive() && sent.has_value();
    return reply;
  }

  // What has come of the body, at once; may be empty.
  template <typename Stream>
  Result<std::string_view> read_piece(Stream& stream,
                                      http::response_parser<http::buffer_body>& parser) {
    auto& body = parser.get().body();
    body.data = piece_.data();
    body.size = piece_.size();
    SLUICE_TRY(step(deadline_after(options_.silence_seconds),
                    [&](auto done) { http::async_read_some(stream, buffer_, parser, done); }));
    return std::string_view(piece_.data(), piece_.size() - body.size);
  }

  const ServerUrl url_;
  const Options options_;
  asio::io_context io_{1};
  tcp::resolver resolver_{io_};
  tcp::socket socket_{io_};
  asio::ssl::context context_{asio::ssl::context::tls_client};
  std::optional<asio::ssl::stream<tcp::socket&>> stream_;  // over TLS only
  boost::beast::flat_buffer buffer_;
  std::array<char, std::size_t{16} << 10> piece_ = {};
  double limit_seconds_ = 0;  // of the step that runs
  bool hung_up_ = false;
  bool heard_ = false;
  bool keeps_alive_ = false;
};

HttpClient::HttpClient(ServerUrl url, Options options)
    : url_(std::move(url)), options_(std::move(options)) {}
HttpClient::~HttpClient() = default;
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;

Result<HttpClient::Reply> HttpClient::get(const std::string& path) {
  return ask({.is_post = false, .path = path, .json = {}}, nullptr);
}

Result<HttpClient::Reply> HttpClient::post(const std::string& path, const std::string& json) {
  return ask({.is_post = true, .path = path, .json = json}, nullptr);
}

Result<HttpClient::Reply> HttpClient::post_stream(const std::string& path, const std::string& json,
                                                  const OnEvent& on_event) {
  return ask({.is_post = true, .path = path, .json = json}, &on_event);
}

Result<HttpClient::Reply> HttpClient::ask(const Request& request, const OnEvent* on_event) {
  try {
    std::unique_ptr<Connection> connection = std::move(connection_);
    if (connection != nullptr && connection->is_closed()) {
      connection.reset();
    }
    const bool reused = connection != nullptr;
    if (!reused) {
      connection = std::make_unique<Connection>(url_, options_);
      SLUICE_TRY(connection->open());
    }
    Result<Reply> reply = connection->exchange(request, on_event);
    if (!reply && reused && connection->hung_up_unheard()) {  // it had just given up waiting for us
      connection = std::make_unique<Connection>(url_, options_);
      SLUICE_TRY(connection->open());
      reply = connection->exchange(request, on_event);
    }
    if (reply && connection->keeps_alive()) {
      connection_ = std::move(connection);
    }
    return reply;
  } catch (const std::exception& error) {  // of Asio and Beast: out of memory or descriptors
    return fail(ErrorCode::io, fmt::format("{}:{}: {}", url_.host, url_.port, error.what()));
  }
}

}  // namespace sluice
