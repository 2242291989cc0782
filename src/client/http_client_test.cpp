// URLs, replies and event streams in every split, and what an unreliable server may do.
#include "client/http_client.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/test_errors.h"
#include "client/event_stream.h"
#include "client/test_http_server.h"

namespace sluice {
namespace {

using test::TestHttpServer;

HttpClient client_of(const TestHttpServer& server, HttpClient::Options options = {}) {
  return HttpClient(parse_server_url(server.url()).value(), std::move(options));
}

TEST(ServerUrl, PartsOfIt) {
  const auto parts = [](std::string_view text) {
    const ServerUrl url = parse_server_url(text).value();
    return std::vector<std::string>{url.tls ? "tls" : "plain", url.host, url.port, url.path};
  };
  using Parts = std::vector<std::string>;
  EXPECT_EQ(parts("http://localhost:8080"), (Parts{"plain", "localhost", "8080", ""}));
  EXPECT_EQ(parts("http://localhost:8080/"), (Parts{"plain", "localhost", "8080", ""}));
  EXPECT_EQ(parts("https://a.example/v1"), (Parts{"tls", "a.example", "443", ""}));
  EXPECT_EQ(parts("http://a/v1/"), (Parts{"plain", "a", "80", ""}));
  EXPECT_EQ(parts("HTTP://[::1]:99/api/v1"), (Parts{"plain", "::1", "99", "/api"}));
  EXPECT_EQ(parts("http://a/pv1"), (Parts{"plain", "a", "80", "/pv1"}));
}

TEST(ServerUrl, ErrorsNameTheText) {
  for (const std::string_view text :
       {"", "localhost:8080", "ftp://a", "http://", "http://a:0", "http://a:99999", "http://a:b",
        "http://user:secret@a", "http://a?x=1", "http://a#b", "http://a b"}) {
    EXPECT_ERROR(parse_server_url(text), ErrorCode::invalid_argument,
                 {"'" + std::string(text) + "' is no server's URL"})
        << text;
  }
  EXPECT_FALSE(parse_server_url("http://" + std::string(3000, 'a')).has_value());
}

TEST(EventStreamTest, AnySplitGivesTheSameEvents) {
  const std::string bytes =
      ": comment\r\n\r\ndata: one\r\n\r\nevent: ping\ndata:two\n\n"
      "data: a\rdata:  b\r\r\n\nid: 7\n\ndata\n\ndata: [x]\r\n\r\n"
      "data: c\r\ndata: d\r\n\r\ndata: cut off";
  const std::vector<std::string> want{"one", "two", "a\n b", "", "[x]", "c\nd"};
  for (std::size_t first = 0; first <= bytes.size(); ++first) {
    for (std::size_t second = first; second <= bytes.size(); ++second) {
      EventStream stream(64);
      std::vector<std::string> events;
      const auto take = [&events](std::string_view data) {
        events.emplace_back(data);
        return true;
      };
      const std::string_view all = bytes;
      EXPECT_TRUE(stream.feed(all.substr(0, first), take).value());
      EXPECT_TRUE(stream.feed(all.substr(first, second - first), take).value());
      EXPECT_TRUE(stream.feed(all.substr(second), take).value());
      ASSERT_EQ(events, want) << first << " " << second;
    }
  }
}

TEST(EventStreamTest, LimitsAndHangingUp) {
  const auto take = [](std::string_view) { return true; };
  EventStream lines(10);
  EXPECT_TRUE(lines.feed("data: 1234", take).has_value());
  EXPECT_ERROR(lines.feed("5", take), ErrorCode::resource_exhausted, {"10 bytes"});
  EventStream events(10);
  EXPECT_TRUE(events.feed("data:1234\n", take).has_value());
  EXPECT_ERROR(events.feed("data:1234\n", take), ErrorCode::resource_exhausted, {"10 bytes"});
  EventStream stream(64);
  int seen = 0;
  EXPECT_FALSE(stream
                   .feed("data: a\n\ndata: b\n\n",
                         [&seen](std::string_view) {
                           ++seen;
                           return false;
                         })
                   .value());
  EXPECT_EQ(seen, 1);
}

TEST(HttpClientTest, RepliesOverOneConnection) {
  TestHttpServer server({{{TestHttpServer::reply("200 OK", "first")}},
                         {{TestHttpServer::reply("404 Not Found", "second")}},
                         {{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
                           "2\r\nde\r\n0\r\n\r\n"}}});
  HttpClient client(parse_server_url(server.url() + "/prefix/v1").value(), {.api_key = "key"});
  HttpClient moved = std::move(client);
  EXPECT_EQ(moved.get("/v1/models").value().body, "first");
  const auto second = moved.post("/v1/x", R"({"a":1})");
  EXPECT_EQ(second.value().status, 404);
  EXPECT_EQ(second.value().body, "second");
  EXPECT_EQ(moved.get("/c").value().body, "abcde");
  EXPECT_EQ(server.connections(), 1);
  const auto requests = server.requests();
  EXPECT_TRUE(requests.at(0).starts_with("GET /prefix/v1/models HTTP/1.1\r\n"));
  EXPECT_TRUE(requests.at(0).contains("Authorization: Bearer key\r\n"));
  EXPECT_TRUE(requests.at(0).contains("Host: 127.0.0.1:" + std::to_string(server.port())));
  EXPECT_TRUE(requests.at(1).starts_with("POST /prefix/v1/x HTTP/1.1\r\n"));
  EXPECT_TRUE(requests.at(1).ends_with("\r\n\r\n{\"a\":1}"));
}

TEST(HttpClientTest, ConnectsAnewWhenTheServerHadClosed) {
  TestHttpServer server({{{TestHttpServer::reply("200 OK", "a")}, true},
                         {{TestHttpServer::reply("200 OK", "b")}},
                         {{"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end"}, true},
                         {{TestHttpServer::reply("200 OK", "d")}}});
  HttpClient client = client_of(server);
  for (const std::string_view want : {"a", "b", "until the end", "d"}) {
    EXPECT_EQ(client.get("/").value().body, want);
  }
  EXPECT_EQ(server.connections(), 3);
  EXPECT_EQ(server.requests().size(), 4U);
}

TEST(HttpClientTest, StreamsInPiecesAndChunks) {
  const std::string body = ": ping\n\ndata: one\n\ndata: two\r\n\r\ndata: [DONE]\n\n";
  std::vector<std::string> bytes;
  for (const char byte : TestHttpServer::stream(body, 5)) {
    bytes.emplace_back(1, byte);
  }
  TestHttpServer server({{{TestHttpServer::stream(body)}}, {bytes}});
  HttpClient client = client_of(server);
  for (int i = 0; i < 2; ++i) {
    std::string seen;
    const auto reply = client.post_stream("/s", "{}", [&seen](std::string_view data) {
      seen += std::string(data) + ";";
      return true;
    });
    EXPECT_EQ(reply.value().status, 200);
    EXPECT_EQ(reply.value().body, "");
    EXPECT_EQ(seen, "one;two;");
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpClientTest, HangsUpWhenToldTo) {
  const std::string stream = TestHttpServer::stream("data: one\n\ndata: two\n\n");
  TestHttpServer server({{{stream}}, {{stream}}});
  HttpClient client = client_of(server);
  for (int i = 0; i < 2; ++i) {
    int seen = 0;
    EXPECT_TRUE(client
                    .post_stream("/s", "{}",
                                 [&seen](std::string_view) {
                                   ++seen;
                                   return false;
                                 })
                    .has_value());
    EXPECT_EQ(seen, 1);
  }
  EXPECT_EQ(server.connections(), 2);
}

TEST(HttpClientTest, RefusedStreamsHaveTheirBody) {
  TestHttpServer server({{{TestHttpServer::reply("429 Too Many", R"({"error":1})")}},
                         {{TestHttpServer::reply("200 OK", "{}")}}});
  HttpClient client = client_of(server);
  const auto never = [](std::string_view) {
    ADD_FAILURE() << "no event came";
    return true;
  };
  const auto refused = client.post_stream("/s", "{}", never);
  EXPECT_EQ(refused.value().status, 429);
  EXPECT_EQ(refused.value().body, R"({"error":1})");
  EXPECT_ERROR(client.post_stream("/s", "{}", never), ErrorCode::corrupt_data,
               {"application/json", "text/event-stream"});
}

TEST(HttpClientTest, WhatServersDoWrong) {
  const std::string half = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
  const std::string chunk =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
      "b\r\ndata: one\n\n\r\n";
  TestHttpServer server({{{half}, true},
                         {{}, true},
                         {{chunk}, true},
                         {{"no HTTP at all\r\n\r\n"}, true},
                         {{"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"}, true},
                         {{"HTTP/1.1 200 OK\r\nX: " + std::string(100000, 'x')}, true}});
  HttpClient client = client_of(server);
  EXPECT_ERROR(client.get("/"), ErrorCode::io, {"127.0.0.1", "hung up"});
  EXPECT_ERROR(client.get("/"), ErrorCode::io, {"hung up"});
  EXPECT_ERROR(client.post_stream("/", "{}", [](std::string_view) { return true; }), ErrorCode::io,
               {"hung up"});
  EXPECT_ERROR(client.get("/"), ErrorCode::corrupt_data, {"127.0.0.1"});
  EXPECT_ERROR(client.get("/"), ErrorCode::resource_exhausted, {"limit"});
  EXPECT_ERROR(client.get("/"), ErrorCode::resource_exhausted, {"limit"});
}

TEST(HttpClientTest, NobodyListens) {
  std::string url;
  {
    const TestHttpServer gone({});
    url = gone.url();
  }
  HttpClient client(parse_server_url(url).value(), {});
  EXPECT_ERROR(client.get("/"), ErrorCode::io, {"127.0.0.1", "refused"});
}

TEST(HttpClientTest, SilenceAndStopping) {
  const TestHttpServer silent({{{}, false, true}});
  HttpClient patient = client_of(silent, {.silence_seconds = 0.05});
  EXPECT_ERROR(patient.get("/"), ErrorCode::deadline, {"0.05 s"});
  const TestHttpServer other({{{}, false, true}});
  const std::atomic<bool> stop = true;
  HttpClient stopped = client_of(other, {.stop = &stop});
  EXPECT_ERROR(stopped.get("/"), ErrorCode::cancelled, {"called off"});
}

TEST(HttpClientTest, PlainServersAreNoTlsServers) {
  TestHttpServer server({{{"HTTP/1.1 400 Bad Request\r\n\r\n"}, true}});
  ServerUrl url = parse_server_url(server.url()).value();
  url.tls = true;
  HttpClient client(url, {.connect_seconds = 0.3});
  EXPECT_FALSE(client.get("/").has_value());
}

}  // namespace
}  // namespace sluice
