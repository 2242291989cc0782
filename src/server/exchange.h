// One request and its reply, as a handler sees them; and the service a connection asks.
//
// Thread rule: an Exchange is used on its own executor only (the strand of its connection).
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/api_error.h"
#include "server/http_message.h"

namespace sluice {

class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  virtual const HttpRequest& request() const = 0;
  virtual std::string take_body() = 0;

  // Instead of the one it came with; before anything is replied.
  virtual void set_request_id(std::string id) = 0;
  virtual boost::asio::any_io_executor executor() = 0;

  // Exactly one of: reply(); or begin_stream(), any number of write(), end_stream(). All may be
  // called after the client is gone: nothing happens then.
  virtual void reply(HttpResponse response) = 0;
  virtual void begin_stream(HttpResponse head) = 0;
  virtual void write(std::string data) = 0;
  virtual void end_stream() = 0;

  // Bytes given to write() that the client has not taken yet.
  virtual std::size_t unsent_bytes() const = 0;

  // Called at most once, when the client goes away before the reply was complete.
  virtual void on_gone(std::function<void()> callback) = 0;

  // Called at most once, when the server will not wait for the rest of the reply: it must be ended
  // now, with this error.
  virtual void on_abort(std::function<void(const ApiError&)> callback) = 0;

  // Called whenever everything written so far was taken.
  virtual void on_sent(std::function<void()> callback) = 0;
};

// What happened to one request, for the access log. No user content.
struct AccessRecord {
  int status = 0;
  std::size_t sent_bytes = 0;
  double seconds = 0.0;
  bool cut_off = false;  // the connection ended before the reply was complete
};

// Thread rule: all methods may run concurrently.
class HttpService {
 public:
  HttpService() = default;
  HttpService(const HttpService&) = delete;
  HttpService& operator=(const HttpService&) = delete;
  virtual ~HttpService() = default;

  // Asked when the headers are there and before the body is read: an answer ends the request.
  virtual std::optional<HttpResponse> refuse(const HttpRequest& head) = 0;

  // Called with the whole request. Must reply, now or later.
  virtual void handle(std::shared_ptr<Exchange> exchange) = 0;

  virtual HttpResponse error_response(const HttpRequest& request, const ApiError& error) = 0;

  // Adds the headers that every reply has.
  virtual void complete_head(const HttpRequest& request, HttpResponse& response) = 0;

  virtual void log(const HttpRequest& request, const AccessRecord& record) = 0;
};

}  // namespace sluice
