// Turns the bytes of a connection into requests, under limits, and says where it stands.
// Knows HTTP/1.x framing (headers, length, chunks); knows no sockets and no timers.
// Thread rule: one owner.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "api/api_error.h"
#include "server/http_message.h"

namespace sluice {

struct ReaderLimits {
  std::size_t header_bytes_max = 0;
  std::size_t body_bytes_max = 0;
};

// A message body that grows with what arrives: an announced length reserves nothing.
struct GrowingBody {
  using value_type = std::string;

  class reader {
   public:
    template <bool is_request, class Fields>
    reader(boost::beast::http::header<is_request, Fields>& header, value_type& body)
        : body_(&body) {
      boost::ignore_unused(header);
    }
    void init(const boost::optional<std::uint64_t>&, boost::beast::error_code& error) {
      error = {};
    }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, boost::beast::error_code& error) {
      std::size_t size = 0;
      for (const auto buffer : boost::beast::buffers_range_ref(buffers)) {
        body_->append(static_cast<const char*>(buffer.data()), buffer.size());
        size += buffer.size();
      }
      error = {};
      return size;
    }
    void finish(boost::beast::error_code& error) { error = {}; }

   private:
    value_type* body_;
  };
};

class RequestReader {
 public:
  enum class Step {
    more,     // needs more bytes
    headers,  // request() has the head; call again for the body
    done,     // request() is complete; call next() before reading on
    failed,   // error(); this connection cannot go on
  };

  explicit RequestReader(const ReaderLimits& limits);

  void append(const char* data, std::size_t size) { buffer_.append(data, size); }
  Step advance();

  // Starts the next request with the bytes that are already there.
  void next();

  HttpRequest& request() { return request_; }
  const ApiError& error() const { return error_; }
  std::size_t buffered_bytes() const { return buffer_.size(); }
  std::size_t body_bytes() const;
  bool started() const { return started_; }  // a byte of this request came
  bool has_headers() const { return has_headers_; }
  bool expects_continue() const { return expects_continue_; }
  bool has_unread_body() const { return has_headers_ && !parser_->is_done(); }
  bool keep_alive() const { return keep_alive_; }
  int http_version() const { return http_version_; }  // 10 or 11

 private:
  void take_head();
  Step fail(const boost::beast::error_code& error);

  ReaderLimits limits_;
  std::string buffer_;
  std::optional<boost::beast::http::request_parser<GrowingBody>> parser_;
  HttpRequest request_;
  ApiError error_;
  bool started_ = false;
  bool has_headers_ = false;
  bool expects_continue_ = false;
  bool keep_alive_ = false;
  int http_version_ = 11;
};

}  // namespace sluice
