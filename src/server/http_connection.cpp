// See http_connection.h. Every callback holds the connection; the connection ends when no
// operation is left, which close() makes sure of.
#include "server/http_connection.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

namespace sluice {
namespace {

namespace asio = boost::asio;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::size_t kPipelinedBytesMax = std::size_t{64} << 10;
constexpr seconds kLinger{5};  // how long a refused upload is read and thrown away

bool is_loopback(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
  }
  return address.is_loopback();
}

}  // namespace

HttpConnection::HttpConnection(Socket socket, const ServerConfig& config, BodyBudget& budget,
                               HttpService& service, std::function<void(HttpConnection&)> on_closed)
    : socket_(std::move(socket)),
      config_(&config),
      service_(&service),
      on_closed_(std::move(on_closed)),
      reader_({config.header_bytes_max, config.body_bytes_max}, budget),
      read_timer_(socket_.get_executor()),
      write_timer_(socket_.get_executor()) {}

HttpConnection::~HttpConnection() {
  if (on_closed_) {
    on_closed_(*this);
  }
}

void HttpConnection::start() {
  boost::system::error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  boost::system::error_code gone;
  from_loopback_ = is_loopback(socket_.remote_endpoint(gone).address()) && !gone;
  arm_read_deadline();
  read();
}

void HttpConnection::drain() {
  if (state_ == State::idle || state_ == State::reading) {
    close();
  } else {
    close_after_ = true;
  }
}

void HttpConnection::drain_now() {
  drain();
  if (const auto abort = std::exchange(on_abort_, {})) {
    abort({ApiErrorKind::not_ready, "the server is shutting down", ""});
  }
}

// Reading.

void HttpConnection::read() {
  if (reading_ || state_ == State::closed) {
    return;
  }
  reading_ = true;
  socket_.async_read_some(
      asio::buffer(chunk_),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t size) {
        self->on_read(error, size);
      });
}

void HttpConnection::on_read(const boost::system::error_code& error, std::size_t size) {
  reading_ = false;
  if (state_ == State::closed) {
    return;
  }
  if (error) {
    // The client is gone. A reply that is complete may still reach one that only stopped sending.
    if (state_ == State::busy && reply_complete_) {
      close_after_ = true;
    } else {
      close();
    }
    return;
  }
  if (state_ == State::lingering) {
    read();
    return;
  }
  reader_.append(chunk_.data(), size);
  if (state_ == State::busy) {
    if (reader_.buffered_bytes() < kPipelinedBytesMax) {
      read();  // notices a client that goes away
    }
    return;
  }
  advance();
}

void HttpConnection::advance() {
  while (state_ == State::idle || state_ == State::reading) {
    const RequestReader::Step step = reader_.advance();
    if (state_ == State::idle && reader_.started()) {
      state_ = State::reading;
      request_started_ = steady_clock::now();
    }
    switch (step) {
      case RequestReader::Step::more:
        arm_read_deadline();
        read();
        return;
      case RequestReader::Step::headers:
        take_headers();
        break;
      case RequestReader::Step::done:
        dispatch();
        break;
      case RequestReader::Step::failed:
        request_ = std::move(reader_.request());
        close_after_ = true;
        answer(service_->error_response(request_, reader_.error()));
        return;
    }
  }
}

void HttpConnection::take_headers() {
  body_started_ = steady_clock::now();
  reader_.request().from_loopback = from_loopback_;
  std::optional<HttpResponse> refusal = service_->refuse(reader_.request());
  if (refusal) {
    request_ = std::move(reader_.request());
    close_after_ = close_after_ || reader_.has_unread_body() || !reader_.keep_alive();
    answer(std::move(*refusal));
  } else if (reader_.expects_continue() && reader_.has_unread_body()) {
    waiting_ += "HTTP/1.1 100 Continue\r\n\r\n";
    send();
  }
}

void HttpConnection::dispatch() {
  request_ = std::move(reader_.request());
  request_.received = steady_clock::now();
  close_after_ = close_after_ || !reader_.keep_alive();
  state_ = State::busy;
  read_timer_.cancel();
  try {
    service_->handle(shared_from_this());
  } catch (const std::exception& error) {
    spdlog::error("{} {}: exception in a handler: {}", request_.id, request_.method, error.what());
    if (head_sent_) {
      close();
    } else {
      reply(service_->error_response(request_, {ApiErrorKind::internal, "internal error", ""}));
    }
  }
  take_body();  // handlers take it at once, or not at all
  read();
}

void HttpConnection::answer(HttpResponse response) {
  state_ = State::busy;
  reader_.release_body();
  read_timer_.cancel();
  reply(std::move(response));
}

// Replying.

void HttpConnection::reply(HttpResponse response) {
  if (state_ != State::busy || head_sent_) {
    return;
  }
  const bool has_body = response.status != 204;
  send_head(response,
            has_body ? fmt::format("Content-Length: {}\r\n", response.body.size()) : std::string());
  if (request_.method != "HEAD") {
    waiting_ += response.body;
  }
  reply_complete_ = true;
  send();
}

void HttpConnection::begin_stream(HttpResponse head) {
  if (state_ != State::busy || head_sent_) {
    return;
  }
  chunked_ = reader_.http_version() >= 11;
  close_after_ = close_after_ || !chunked_;
  send_head(head, chunked_ ? "Transfer-Encoding: chunked\r\n" : "");
  send();
}

void HttpConnection::write(std::string data) {
  if (state_ != State::busy || !head_sent_ || reply_complete_ || data.empty()) {
    return;
  }
  if (chunked_) {
    waiting_ += fmt::format("{:x}\r\n", data.size());
    waiting_ += data;
    waiting_ += "\r\n";
  } else {
    waiting_ += data;
  }
  send();
}

void HttpConnection::end_stream() {
  if (state_ != State::busy || !head_sent_ || reply_complete_) {
    return;
  }
  if (chunked_) {
    waiting_ += "0\r\n\r\n";
  }
  reply_complete_ = true;
  send();
}

void HttpConnection::send_head(HttpResponse& response, std::string_view framing_header) {
  service_->complete_head(request_, response);
  head_sent_ = true;
  record_.status = response.status;
  waiting_ += head_text(response, reader_.http_version(), !close_after_, framing_header);
}

// Sending.

void HttpConnection::send() {
  if (sending_active_ || state_ == State::closed) {
    return;
  }
  if (sent_of_sending_ == sending_.size()) {
    sending_ = std::exchange(waiting_, {});
    sent_of_sending_ = 0;
  }
  if (sending_.empty()) {
    if (state_ == State::busy && reply_complete_) {
      finish_exchange();
    } else if (on_sent_) {
      on_sent_();
    }
    return;
  }
  sending_active_ = true;
  write_timer_.expires_after(seconds(config_->write_seconds_max));
  write_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && self->sending_active_ && steady_clock::now() >= self->write_timer_.expiry()) {
      self->close();
    }
  });
  socket_.async_write_some(
      asio::buffer(sending_.data() + sent_of_sending_, sending_.size() - sent_of_sending_),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t size) {
        self->on_written(error, size);
      });
}

void HttpConnection::on_written(const boost::system::error_code& error, std::size_t size) {
  sending_active_ = false;
  write_timer_.cancel();
  if (state_ == State::closed) {
    return;
  }
  if (error) {
    close();
    return;
  }
  sent_of_sending_ += size;
  record_.sent_bytes += size;
  send();
}

void HttpConnection::finish_exchange() {
  record_.seconds = std::chrono::duration<double>(steady_clock::now() - request_started_).count();
  service_->log(request_, record_);
  record_ = {};
  on_gone_ = {};
  on_abort_ = {};
  on_sent_ = {};
  if (close_after_) {
    linger();
    return;
  }
  state_ = State::idle;
  head_sent_ = false;
  chunked_ = false;
  reply_complete_ = false;
  request_ = HttpRequest{};
  reader_.next();
  // Not from here: send() may have been called by a handler that has not returned yet.
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->advance(); });
}

// Ends the sending side and reads on for a while: closing with unread bytes would make the
// operating system take the reply away from the client.
void HttpConnection::linger() {
  state_ = State::lingering;
  boost::system::error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  read_timer_.expires_after(kLinger);
  read_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) {
      self->close();
    }
  });
  read();
}

void HttpConnection::close() {
  if (state_ == State::closed) {
    return;
  }
  const bool cut_off = state_ == State::busy;
  state_ = State::closed;
  if (cut_off) {
    record_.cut_off = true;
    record_.seconds = std::chrono::duration<double>(steady_clock::now() - request_started_).count();
    service_->log(request_, record_);
  }
  boost::system::error_code ignored;
  read_timer_.cancel();
  write_timer_.cancel();
  socket_.close(ignored);
  on_sent_ = {};
  on_abort_ = {};
  if (const auto gone = std::exchange(on_gone_, {})) {
    gone();
  }
  if (const auto closed = std::exchange(on_closed_, {})) {
    closed(*this);
  }
}

// Time limits of reading.

void HttpConnection::arm_read_deadline() {
  TimePoint deadline = steady_clock::now() + seconds(config_->idle_seconds_max);
  if (state_ == State::reading && !reader_.has_headers()) {
    deadline = request_started_ + seconds(config_->header_seconds_max);
  } else if (state_ == State::reading) {
    const auto earned =
        reader_.body_bytes() / std::max<std::size_t>(config_->body_bytes_per_second, 1);
    deadline = body_started_ + seconds(config_->body_grace_seconds) +
               seconds(static_cast<std::int64_t>(earned));
  }
  read_timer_.expires_at(deadline);
  read_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && steady_clock::now() >= self->read_timer_.expiry()) {
      self->on_read_deadline();
    }
  });
}

void HttpConnection::on_read_deadline() {
  if (state_ == State::idle) {
    close();
  } else if (state_ == State::reading) {
    request_ = std::move(reader_.request());
    if (request_.id.empty()) {
      request_.id = random_id("req_");
    }
    close_after_ = true;
    answer(service_->error_response(
        request_, {ApiErrorKind::request_timeout, "the request took too long to arrive", ""}));
  }
}

}  // namespace sluice
