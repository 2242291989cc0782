// See http_server.h. The I/O context ends by itself when nothing is left to wait for: stop() only
// takes things away (the acceptor, idle connections, at last all of them), it never stops the loop.
#include "server/http_server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "api/tools/call_memory.h"
#include "server/engine_slot.h"
#include "server/error_map.h"
#include "server/http_connection.h"
#include "server/media_loader.h"
#include "server/plan_pool.h"
#include "server/response_store.h"
#include "server/router.h"
#include "server/running_responses.h"
#include "text/grammar_cache.h"
#include "text/thinking_tokens.h"

namespace sluice {

namespace asio = boost::asio;
using asio::ip::tcp;

class HttpServer::Impl {
 public:
  Impl(const ServerConfig& config, const EngineConfig& engine, const ServedModel& model)
      : config_(config),
        engine_(engine),
        grammars_(model.tokenizer, model.generation.eos_token_ids,
                  [this](double seconds) { metrics_.grammar_compiled(seconds); }),
        plans_({.bytes_max = std::max(config.body_bytes_total, config.body_bytes_max)}),
        media_(config_.media, model.vision, plans_),
        io_(std::max(config.threads, 1)),
        acceptor_(asio::make_strand(io_)),
        accept_pause_(acceptor_.get_executor()),
        drain_timer_(acceptor_.get_executor()),
        backend_{.config = &config_,
                 .model = &model,
                 .engine = &engine_,
                 .readiness = &readiness_,
                 .responses = &responses_,
                 .running_responses = &running_responses_,
                 .metrics = &metrics_,
                 .bodies = &body_budget_,
                 .calls = &calls_,
                 .grammars = &grammars_,
                 .media = &media_,
                 .plans = &plans_} {}

  ~Impl() {
    plans_.end();  // tasks end on strands of io_
    const std::lock_guard lock(connections_mutex_);
    closing_ = true;
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<void> prepare();
  Result<void> listen();
  void set_progress(double progress) { readiness_.set_progress(progress); }
  void set_engine(Engine& engine);
  void run();
  void stop();

  std::uint16_t port() const { return port_; }
  std::string url() const { return fmt::format("http://{}:{}", host_in_url(), port_); }

 private:
  std::string host_in_url() const {
    return config_.host.find(':') != std::string::npos ? fmt::format("[{}]", config_.host)
                                                       : config_.host;
  }
  void run_loop();
  void accept();
  void take_connection(tcp::socket socket);
  void refuse_connection(tcp::socket& socket);
  void forget(HttpConnection& connection);
  void on_stop();
  void end_answers();
  void for_each_connection(void (HttpConnection::*action)());

  // Connections live in operations of io_ and use what stands above it.
  const ServerConfig config_;
  BodyBudget body_budget_{config_.body_bytes_total};
  EngineSlot engine_;
  Readiness readiness_;
  const SteadyClock clock_;
  ResponseStore responses_{ResponseStoreLimits{}, clock_};
  RunningResponses running_responses_;
  ServerMetrics metrics_;
  CallMemory calls_{kCallMemoryBytesMax};
  std::optional<Router> router_;
  std::mutex connections_mutex_;  // also guards closing_
  std::map<HttpConnection*, std::weak_ptr<HttpConnection>> connections_;
  bool closing_ = false;
  GrammarCache grammars_;
  PlanPool plans_;
  MediaLoader media_;
  asio::io_context io_;
  tcp::acceptor acceptor_;
  asio::steady_timer accept_pause_;
  asio::steady_timer drain_timer_;
  Backend backend_;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  std::uint16_t port_ = 0;
  int stop_count_ = 0;  // on the strand of the acceptor
};

// What the first requests should not have to wait for.
Result<void> HttpServer::Impl::prepare() {
  backend_.thinking = std::make_shared<const ThinkingTokens>(
      SLUICE_TRY(ThinkingTokens::of(backend_.model->tokenizer)));
  if (!backend_.model->generation.eos_token_ids.empty()) {
    SLUICE_TRY(grammars_.prepare());
  }
  return {};
}

Result<void> HttpServer::Impl::listen() {
  boost::system::error_code error;
  const std::string host = config_.host == "localhost" ? "127.0.0.1" : config_.host;
  const auto address = asio::ip::make_address(host, error);
  if (error) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("'{}' is not an IP address to listen on", config_.host), "host");
  }
  auto access = SLUICE_TRY(Access::create(config_, address.is_loopback()));
  router_.emplace(backend_, access);
  const tcp::endpoint endpoint(address, config_.port);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) {
    acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  }
  if (!error) {
    acceptor_.bind(endpoint, error);
  }
  if (!error) {
    acceptor_.listen(asio::socket_base::max_listen_connections, error);
  }
  if (error) {
    return fail(
        ErrorCode::io,
        fmt::format("cannot listen on {} port {}: {}", config_.host, config_.port, error.message()),
        "port");
  }
  port_ = acceptor_.local_endpoint(error).port();
  return {};
}

void HttpServer::Impl::set_engine(Engine& engine) {
  engine_.fill(engine);
  readiness_.probe(engine_, io_);
}

void HttpServer::Impl::run() {
  work_.emplace(io_.get_executor());
  asio::post(acceptor_.get_executor(), [this] { accept(); });
  std::vector<std::thread> threads;
  for (int i = 1; i < config_.threads; ++i) {
    threads.emplace_back([this] { run_loop(); });
  }
  run_loop();
  for (std::thread& thread : threads) {
    thread.join();
  }
  readiness_.end_probe();
}

// The last net: connections and runs catch what they throw themselves.
void HttpServer::Impl::run_loop() {
  while (true) {
    try {
      io_.run();
      return;
    } catch (const std::exception& error) {
      spdlog::error("exception in an HTTP thread: {}", error.what());
    }
  }
}

void HttpServer::Impl::accept() {
  acceptor_.async_accept(
      asio::make_strand(io_), [this](const boost::system::error_code& error, tcp::socket socket) {
        if (!acceptor_.is_open()) {
          return;
        }
        if (error) {  // out of descriptors, most likely: wait until some are free
          constexpr std::chrono::milliseconds kPause{100};
          spdlog::warn("cannot accept a connection: {}", error.message());
          accept_pause_.expires_after(kPause);
          accept_pause_.async_wait([this](const boost::system::error_code& cancelled) {
            if (!cancelled && acceptor_.is_open()) {
              accept();
            }
          });
          return;
        }
        take_connection(std::move(socket));
        accept();
      });
}

void HttpServer::Impl::take_connection(tcp::socket socket) {
  std::shared_ptr<HttpConnection> connection;
  {
    const std::lock_guard lock(connections_mutex_);
    if (connections_.size() < config_.connections_max) {
      connection =
          std::make_shared<HttpConnection>(std::move(socket), config_, body_budget_, *router_,
                                           [this](HttpConnection& closed) { forget(closed); });
      connections_.emplace(connection.get(), connection);
    }
  }
  if (!connection) {
    refuse_connection(socket);
    return;
  }
  asio::dispatch(connection->executor(), [connection] { connection->start(); });
}

// A fresh socket takes these few bytes without waiting.
void HttpServer::Impl::refuse_connection(tcp::socket& socket) {
  HttpResponse response =
      openai_error_response({ApiErrorKind::not_ready, "too many connections are open", ""});
  const std::string text =
      head_text(response, 11, false, fmt::format("Content-Length: {}\r\n", response.body.size())) +
      response.body;
  boost::system::error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(text), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
  socket.close(ignored);
}

void HttpServer::Impl::forget(HttpConnection& connection) {
  const std::lock_guard lock(connections_mutex_);
  connections_.erase(&connection);
  if (connections_.empty() && !closing_) {
    asio::post(acceptor_.get_executor(), [this] {
      if (stop_count_ > 0) {
        drain_timer_.cancel();
      }
    });
  }
}

void HttpServer::Impl::stop() {
  readiness_.drain();
  asio::post(acceptor_.get_executor(), [this] { on_stop(); });
}

void HttpServer::Impl::on_stop() {
  ++stop_count_;
  if (stop_count_ == 2) {
    end_answers();
    return;
  }
  if (stop_count_ > 2) {
    drain_timer_.cancel();
    plans_.stop();
    for_each_connection(&HttpConnection::close_now);
    return;
  }
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  accept_pause_.cancel();
  for_each_connection(&HttpConnection::drain);
  bool idle = false;
  {
    const std::lock_guard lock(connections_mutex_);
    idle = connections_.empty();
  }
  if (!idle) {
    drain_timer_.expires_after(std::chrono::seconds(config_.drain_seconds_max));
    drain_timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) {
        end_answers();
      }
    });
  }
  work_.reset();
}

// What is still being answered ends with an error; clients get a moment to take it.
void HttpServer::Impl::end_answers() {
  constexpr std::chrono::seconds kLastWords{2};
  plans_.stop();
  for_each_connection(&HttpConnection::drain_now);
  drain_timer_.expires_after(kLastWords);
  drain_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      for_each_connection(&HttpConnection::close_now);
    }
  });
}

void HttpServer::Impl::for_each_connection(void (HttpConnection::*action)()) {
  const std::lock_guard lock(connections_mutex_);
  for (auto& [key, weak] : connections_) {
    if (const auto connection = weak.lock()) {
      asio::post(connection->executor(), [connection, action] { (connection.get()->*action)(); });
    }
  }
}

Result<std::unique_ptr<HttpServer>> HttpServer::create(const ServerConfig& config,
                                                       const EngineConfig& engine,
                                                       const ServedModel& model) {
  try {
    auto impl = std::make_unique<Impl>(config, engine, model);
    if (auto prepared = impl->prepare(); !prepared) {
      return std::unexpected(std::move(prepared).error());
    }
    if (auto listening = impl->listen(); !listening) {
      return std::unexpected(std::move(listening).error());
    }
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
  } catch (const std::exception& error) {
    return fail(ErrorCode::io, fmt::format("cannot start the HTTP server: {}", error.what()));
  }
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;
std::uint16_t HttpServer::port() const {
  return impl_->port();
}
std::string HttpServer::url() const {
  return impl_->url();
}
void HttpServer::set_progress(double progress) {
  impl_->set_progress(progress);
}
void HttpServer::set_engine(Engine& engine) {
  impl_->set_engine(engine);
}
void HttpServer::run() {
  impl_->run();
}
void HttpServer::stop() {
  impl_->stop();
}

}  // namespace sluice
