// Turns the bytes of a connection into requests, under limits, and says where it stands.
// Knows HTTP/1.x framing (headers, length, chunks); knows no sockets and no timers.
// Thread rule: one owner.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/api_error.h"
#include "server/body_budget.h"
#include "server/gzip_decoder.h"
#include "server/http_message.h"

namespace sluice {

struct ReaderLimits {
  std::size_t header_bytes_max = 0;
  std::size_t body_bytes_max = 0;  // also of the text of a compressed body
};

// The body of one request as it arrives: unpacked, under limits.
class ArrivingBody {
 public:
  // Why it cannot go on.
  enum class Fault { none, too_large, over_budget, not_gzip };

  void start(std::size_t bytes_max, BodyLease& lease) {
    bytes_max_ = bytes_max;
    lease_ = &lease;
  }
  void expect_gzip() { gzip_.emplace(); }

  // False after a fault.
  bool append(std::string_view piece);
  bool finish();

  Fault fault() const { return fault_; }
  std::size_t received_bytes() const { return received_bytes_; }  // as sent
  std::string take_text() { return std::move(text_); }
  void drop_text() { text_ = {}; }

 private:
  bool fail(Fault fault) {
    fault_ = fault;
    return false;
  }

  std::size_t bytes_max_ = 0;
  BodyLease* lease_ = nullptr;
  std::optional<GzipDecoder> gzip_;
  std::string text_;
  std::size_t received_bytes_ = 0;
  Fault fault_ = Fault::none;
};

// Hands the body of a message to an ArrivingBody: an announced length reserves nothing.
struct GrowingBody {
  using value_type = ArrivingBody;

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
      error = {};
      for (const auto buffer : boost::beast::buffers_range_ref(buffers)) {
        if (!body_->append({static_cast<const char*>(buffer.data()), buffer.size()})) {
          error = boost::beast::http::error::body_limit;  // ArrivingBody::fault() knows more
          return size;
        }
        size += buffer.size();
      }
      return size;
    }
    void finish(boost::beast::error_code& error) {
      error = {};
      if (!body_->finish()) {
        error = boost::beast::http::error::body_limit;
      }
    }

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

  // The budget must outlive the reader.
  RequestReader(const ReaderLimits& limits, BodyBudget& budget);

  void append(const char* data, std::size_t size) { buffer_.append(data, size); }
  Step advance();

  // The body was taken, or nobody will: it no longer counts.
  void release_body() {
    parser_->get().body().drop_text();
    lease_.release();
  }

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
  BodyLease lease_;
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
