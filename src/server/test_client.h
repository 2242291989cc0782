// For tests: a client that sends and receives raw bytes, so that it can misbehave.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/http_message.h"

namespace sluice {

struct TestReply {
  int status = 0;                                   // 0: the connection ended before a reply
  std::map<std::string, std::string> headers = {};  // names in lower case
  std::string body = {};                            // without chunk framing
  bool complete = false;

  boost::json::value json() const { return boost::json::parse(body); }
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
  // The data of each event of a stream.
  std::vector<std::string> events() const {
    std::vector<std::string> list;
    std::size_t at = 0;
    while ((at = body.find("data: ", at)) != std::string::npos) {
      const std::size_t end = body.find("\n\n", at);
      list.push_back(body.substr(at + 6, end - at - 6));
      at = end;
    }
    return list;
  }
};

class TestClient {
 public:
  explicit TestClient(std::uint16_t port, int receive_buffer = 0) {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    const timeval limit{20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (receive_buffer > 0) {
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~TestClient() { close(); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  bool connected() const { return connected_; }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) {
        return false;
      }
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  bool send_post(const std::string& path, const std::string& body,
                 const std::string& headers = {}) {
    return send("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n" + headers + "\r\n" + body);
  }
  bool send_get(const std::string& path, const std::string& headers = {},
                const std::string& method = "GET") {
    return send(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
  }

  // Waits for at least one more byte. False at the end of the connection.
  bool receive() {
    char bytes[65536];
    const ssize_t size = ::recv(socket_, bytes, sizeof(bytes), 0);
    if (size <= 0) {
      return false;
    }
    buffer_.append(bytes, static_cast<std::size_t>(size));
    return true;
  }

  // Waits until `text` was received. Leaves it in the buffer.
  bool wait_for(std::string_view text) {
    while (buffer_.find(text) == std::string::npos) {
      if (!receive()) {
        return false;
      }
    }
    return true;
  }

  TestReply reply(bool to_head = false);

  void close() {
    if (socket_ >= 0) {
      ::close(socket_);
      socket_ = -1;
    }
  }
  const std::string& buffer() const { return buffer_; }

 private:
  bool take_bytes(std::size_t size, std::string& to) {
    while (buffer_.size() < size) {
      if (!receive()) {
        return false;
      }
    }
    to += buffer_.substr(0, size);
    buffer_.erase(0, size);
    return true;
  }
  bool take_line(std::string& line) {
    while (buffer_.find("\r\n") == std::string::npos) {
      if (!receive()) {
        return false;
      }
    }
    line = buffer_.substr(0, buffer_.find("\r\n"));
    buffer_.erase(0, line.size() + 2);
    return true;
  }
  bool take_chunks(std::string& body) {
    std::string line;
    while (take_line(line)) {
      const std::size_t size = std::stoul(line, nullptr, 16);
      if (!take_bytes(size, body) || !take_line(line)) {
        return false;
      }
      if (size == 0) {
        return true;
      }
    }
    return false;
  }

  int socket_ = -1;
  bool connected_ = false;
  std::string buffer_;
};

inline TestReply TestClient::reply(bool to_head) {
  TestReply reply;
  std::string line;
  if (!take_line(line) || line.size() < 12) {
    return reply;
  }
  reply.status = std::stoi(line.substr(9, 3));
  while (take_line(line) && !line.empty()) {
    const std::size_t colon = line.find(": ");
    std::string name = line.substr(0, colon);
    for (char& c : name) {
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    reply.headers[name] = line.substr(colon + 2);
  }
  if (to_head || reply.status == 204 || reply.status == 100) {
    reply.complete = true;
  } else if (reply.header("transfer-encoding") == "chunked") {
    reply.complete = take_chunks(reply.body);
  } else if (!reply.header("content-length").empty()) {
    reply.complete = take_bytes(std::stoul(reply.header("content-length")), reply.body);
  } else {
    while (receive()) {
    }
    reply.body = buffer_;
    reply.complete = true;
  }
  return reply;
}

}  // namespace sluice
