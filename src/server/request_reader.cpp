#include "server/request_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace sluice {
namespace {

namespace http = boost::beast::http;

// What a body in chunks ends with at the least. The parser must not get less at once: it asserts
// that a last chunk it has seen a part of is there as a whole.
constexpr std::string_view kLastChunk = "0\r\n\r\n";

std::string text(boost::beast::string_view view) {
  return {view.data(), view.size()};
}

// What a proxy in front of this server could read in another way; null when there is nothing.
const char* ambiguity_of(const http::fields& headers) {
  if (headers.count(http::field::host) > 1) {
    return "there is more than one Host";
  }
  const auto coding = headers.find(http::field::transfer_encoding);
  if (coding != headers.end() && (headers.count(http::field::transfer_encoding) > 1 ||
                                  !equal_ignoring_case(text(coding->value()), "chunked"))) {
    return "Transfer-Encoding may only be chunked";
  }
  return nullptr;
}

}  // namespace

bool ArrivingBody::append(std::string_view piece) {
  received_bytes_ += piece.size();
  if (gzip_) {
    switch (gzip_->decode(piece, bytes_max_, text_)) {
      case GzipDecoder::Outcome::ok:
        break;
      case GzipDecoder::Outcome::not_gzip:
        return fail(Fault::not_gzip);
      case GzipDecoder::Outcome::too_large:
        return fail(Fault::too_large);
    }
  } else {
    text_ += piece;
  }
  return lease_->grow_to(text_.size()) || fail(Fault::over_budget);
}

bool ArrivingBody::finish() {
  return !gzip_ || gzip_->is_complete() || fail(Fault::not_gzip);
}

RequestReader::RequestReader(const ReaderLimits& limits, BodyBudget& budget)
    : limits_(limits), lease_(budget) {
  next();
}

void RequestReader::next() {
  constexpr std::size_t kHeaderLimitMax = std::numeric_limits<std::uint32_t>::max();
  parser_.emplace();
  parser_->header_limit(
      static_cast<std::uint32_t>(std::min(limits_.header_bytes_max, kHeaderLimitMax)));
  parser_->body_limit(limits_.body_bytes_max);
  parser_->get().body().start(limits_.body_bytes_max, lease_);
  lease_.release();
  parser_->eager(false);
  request_ = HttpRequest{};
  started_ = !buffer_.empty();
  has_headers_ = false;
  expects_continue_ = false;
  keep_alive_ = false;
}

RequestReader::Step RequestReader::advance() {
  if (!parser_->got_some()) {
    // Some clients end a body with an empty line that is not part of it.
    buffer_.erase(0, std::min(buffer_.find_first_not_of("\r\n"), buffer_.size()));
  }
  while (!parser_->is_done()) {
    const bool in_chunks = has_headers_ && parser_->chunked();
    if (buffer_.empty() || (in_chunks && buffer_.size() < kLastChunk.size())) {
      return Step::more;
    }
    started_ = true;
    boost::beast::error_code error;
    const std::size_t used =
        parser_->put(boost::asio::const_buffer(buffer_.data(), buffer_.size()), error);
    buffer_.erase(0, used);
    if (error == http::error::need_more && in_chunks && buffer_.size() > limits_.header_bytes_max) {
      // All that the parser keeps of a body is a head of a chunk or trailers that have no end.
      error = http::error::header_limit;
    }
    if (error == http::error::need_more) {
      return Step::more;
    }
    if (error) {
      return fail(error);
    }
    if (!has_headers_ && parser_->is_header_done()) {
      take_head();
      if (const char* ambiguity = ambiguity_of(parser_->get())) {
        error_ = {ApiErrorKind::bad_http, ambiguity, ""};
        return Step::failed;
      }
      return Step::headers;
    }
  }
  request_.body = parser_->get().body().take_text();
  return Step::done;
}

std::size_t RequestReader::body_bytes() const {
  return parser_->get().body().received_bytes();
}

void RequestReader::take_head() {
  auto& message = parser_->get();
  has_headers_ = true;
  parser_->eager(true);
  http_version_ = message.version() >= 11 ? 11 : 10;
  keep_alive_ = parser_->keep_alive();
  expects_continue_ = equal_ignoring_case(text(message[http::field::expect]), "100-continue");
  request_.method = text(message.method_string());
  request_.target = text(message.target());
  request_.path = path_of_target(request_.target);
  request_.headers = static_cast<http::fields&>(message);
  request_.id = request_id_from(text(message["x-request-id"]));
  if (is_gzip(request_.header("Content-Encoding"))) {
    message.body().expect_gzip();
  }
}

RequestReader::Step RequestReader::fail(const boost::beast::error_code& error) {
  const ArrivingBody::Fault fault = parser_->get().body().fault();
  if (fault == ArrivingBody::Fault::over_budget) {
    error_ = {ApiErrorKind::queue_full,
              "too many large requests arrive at once: their bodies take all the memory there is "
              "for them",
              ""};
  } else if (fault == ArrivingBody::Fault::not_gzip) {
    error_ = {ApiErrorKind::bad_http, "the body is not valid gzip", ""};
  } else if (error == http::error::body_limit) {
    error_ = {ApiErrorKind::request_too_large,
              fmt::format("the body has more than {} bytes", limits_.body_bytes_max), ""};
  } else if (error == http::error::header_limit) {
    error_ = {ApiErrorKind::headers_too_large,
              fmt::format("the headers have more than {} bytes", limits_.header_bytes_max), ""};
  } else {
    error_ = {ApiErrorKind::bad_http, "not a valid HTTP request: " + error.message(), ""};
  }
  if (request_.id.empty()) {
    request_.id = random_id("req_");
  }
  return Step::failed;
}

}  // namespace sluice
