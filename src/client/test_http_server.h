// For tests: a server on this machine that gives its answers in turn, byte by byte as they are
// written down, one for each request, whatever is asked.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"

namespace sluice::test {

class TestHttpServer {
 public:
  struct Answer {
    std::vector<std::string> pieces;  // each sent by itself
    bool hangs_up = false;            // after the last piece
    bool is_silent = false;           // then nothing, until the test ends
  };

  explicit TestHttpServer(std::vector<Answer> answers) : answers_(std::move(answers)) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    SLUICE_CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    SLUICE_CHECK(listen(listener_, 16) == 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~TestHttpServer() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      shutdown(connection_, SHUT_RDWR);
    }
    stopped_.notify_all();
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  TestHttpServer(const TestHttpServer&) = delete;
  TestHttpServer& operator=(const TestHttpServer&) = delete;

  int port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // Headers and body of every request so far.
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  int connections() const {
    const std::lock_guard lock(mutex_);
    return connections_;
  }

  // A whole reply with Content-Length.
  static std::string reply(std::string_view status, std::string_view body,
                           std::string_view type = "application/json") {
    return "HTTP/1.1 " + std::string(status) + "\r\nContent-Type: " + std::string(type) +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
  }
  // An event stream of these bytes, in chunks of so many.
  static std::string stream(std::string_view body, std::size_t chunk_bytes = 1024) {
    std::string bytes =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    constexpr std::string_view kHex = "0123456789abcdef";
    while (!body.empty()) {
      const std::string_view chunk = body.substr(0, chunk_bytes);
      std::string size;
      for (std::size_t left = chunk.size(); left > 0; left /= 16) {
        size.insert(size.begin(), kHex[left % 16]);
      }
      bytes += size + "\r\n" + std::string(chunk) + "\r\n";
      body.remove_prefix(chunk.size());
    }
    return bytes + "0\r\n\r\n";
  }

 private:
  void run() {
    while (true) {
      const int connection = accept(listener_, nullptr, nullptr);
      if (connection < 0) {
        return;
      }
      {
        const std::lock_guard lock(mutex_);
        connection_ = connection;
        ++connections_;
      }
      while (serve_one(connection)) {
      }
      const std::lock_guard lock(mutex_);
      connection_ = -1;
      close(connection);
    }
  }

  // False: the connection ends.
  bool serve_one(int connection) {
    if (!read_request(connection) || next_ >= answers_.size()) {
      return false;
    }
    const Answer& answer = answers_[next_++];
    for (const std::string& piece : answer.pieces) {
      if (send(connection, piece.data(), piece.size(), MSG_NOSIGNAL) < 0) {
        return false;
      }
      std::this_thread::yield();
    }
    if (answer.is_silent) {
      std::unique_lock lock(mutex_);
      stopped_.wait(lock, [this] { return stopping_; });
    }
    return !answer.hangs_up && !answer.is_silent;
  }

  bool read_request(int connection) {
    std::string request;
    std::size_t end = std::string::npos;
    std::size_t body_bytes = 0;
    while (end == std::string::npos || request.size() < end + body_bytes) {
      char piece[4096];
      const ssize_t read = recv(connection, piece, sizeof(piece), 0);
      if (read <= 0) {
        return false;
      }
      request.append(piece, static_cast<std::size_t>(read));
      if (end == std::string::npos && request.contains("\r\n\r\n")) {
        end = request.find("\r\n\r\n") + 4;
        constexpr std::string_view kLength = "Content-Length: ";
        const std::size_t length = request.find(kLength);
        body_bytes = length < end ? std::stoul(request.substr(length + kLength.size())) : 0;
      }
    }
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
    return true;
  }

  std::vector<Answer> answers_;
  std::size_t next_ = 0;  // of the thread alone
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable stopped_;
  bool stopping_ = false;
  int connection_ = -1;
  int connections_ = 0;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace sluice::test
