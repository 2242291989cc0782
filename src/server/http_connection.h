// One connection: reads requests under time limits, hands them to the service one after the other,
// and sends what the handlers reply. Notices when the client goes away while a reply is being made.
//
//   idle -> reading -> busy (handler and sending) -> idle ... -> closed
//
// Thread rule: everything runs on the strand of the socket, drain() and close_now() included.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "server/exchange.h"
#include "server/request_reader.h"
#include "server/server_config.h"

namespace sluice {

class HttpConnection final : public Exchange, public std::enable_shared_from_this<HttpConnection> {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  // config, budget and service must outlive the connection. on_closed is called once, at the end.
  HttpConnection(Socket socket, const ServerConfig& config, BodyBudget& budget,
                 HttpService& service, std::function<void(HttpConnection&)> on_closed);
  ~HttpConnection() override;

  void start();

  // Closes an idle connection; a busy one after its reply.
  void drain();

  // The same, but a reply that is still being made is ended at once, with an error.
  void drain_now();
  void close_now() { close(); }

  const HttpRequest& request() const override { return request_; }
  std::string take_body() override {
    reader_.release_body();
    return std::move(request_.body);
  }
  void set_request_id(std::string id) override { request_.id = std::move(id); }
  boost::asio::any_io_executor executor() override { return socket_.get_executor(); }
  void reply(HttpResponse response) override;
  void begin_stream(HttpResponse head) override;
  void write(std::string data) override;
  void end_stream() override;
  std::size_t unsent_bytes() const override {
    return waiting_.size() + sending_.size() - sent_of_sending_;
  }
  void on_gone(std::function<void()> callback) override { on_gone_ = std::move(callback); }
  void on_abort(std::function<void(const ApiError&)> callback) override {
    on_abort_ = std::move(callback);
  }
  void on_sent(std::function<void()> callback) override { on_sent_ = std::move(callback); }

 private:
  enum class State { idle, reading, busy, lingering, closed };
  using TimePoint = std::chrono::steady_clock::time_point;

  void read();
  void on_read(const boost::system::error_code& error, std::size_t size);
  void advance();
  void take_headers();
  void dispatch();
  void answer(HttpResponse response);  // without a handler
  void send_head(HttpResponse& response, std::string_view framing_header);

  void send();
  void on_written(const boost::system::error_code& error, std::size_t size);
  void finish_exchange();
  void linger();
  void close();

  void arm_read_deadline();
  void on_read_deadline();

  Socket socket_;
  const ServerConfig* config_;
  HttpService* service_;
  std::function<void(HttpConnection&)> on_closed_;

  State state_ = State::idle;
  bool reading_ = false;  // a read is under way
  bool from_loopback_ = false;
  std::array<char, 16384> chunk_ = {};
  RequestReader reader_;
  boost::asio::steady_timer read_timer_;
  TimePoint request_started_ = {};
  TimePoint body_started_ = {};

  HttpRequest request_;  // the one being answered
  bool close_after_ = false;
  bool head_sent_ = false;
  bool chunked_ = false;
  bool reply_complete_ = false;
  AccessRecord record_;
  std::function<void()> on_gone_;
  std::function<void(const ApiError&)> on_abort_;
  std::function<void()> on_sent_;

  std::string waiting_;  // to be sent after sending_
  std::string sending_;
  std::size_t sent_of_sending_ = 0;
  bool sending_active_ = false;
  boost::asio::steady_timer write_timer_;
};

}  // namespace sluice
