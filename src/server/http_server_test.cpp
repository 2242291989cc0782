// The transport, with clients that misbehave: raw sockets against a running server.
#include "server/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "server/body_budget.h"
#include "server/test_server.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;

std::string compressed(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST_F(ServerTest, HealthVersionAndRoot) {
  start();
  ASSERT_TRUE(eventually([&] { return get("/ready").status == 200; }));
  EXPECT_EQ(get("/health").json().at("status"), "ok");
  EXPECT_EQ(get("/live").status, 200);
  EXPECT_EQ(get("/v1/health").status, 200);
  EXPECT_EQ(get("/ping").status, 200);
  EXPECT_EQ(get("/").status, 200);
  EXPECT_EQ(get("/version").json().at("fingerprint"), "fp_test");
}

TEST_F(ServerTest, UnknownPathsAndWrongMethodsAreJson) {
  start();
  const TestReply unknown = get("/nothing/here");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.json().at("error").at("code"), "not_found");
  const TestReply wrong = get("/v1/chat/completions");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.header("allow"), "POST, OPTIONS");
  EXPECT_EQ(wrong.json().at("error").at("type"), "invalid_request_error");
  EXPECT_EQ(wrong.header("x-should-retry"), "false");
  EXPECT_EQ(post("/v1/models", "{}").status, 405);
  EXPECT_EQ(post("/v1/embeddings", "{}").json().at("error").at("code"), "unsupported_endpoint");
  EXPECT_EQ(get("/v1/models", "Upgrade: websocket\r\nConnection: Upgrade\r\n").status, 426);
}

TEST_F(ServerTest, HeadHasNoBodyAndKeepsTheConnection) {
  start();
  TestClient client(port());
  client.send_get("/v1/models", "", "HEAD");
  const TestReply head = client.reply(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_NE(head.header("content-length"), "0");
  client.send_get("/live");
  EXPECT_EQ(client.reply().status, 200);
}

TEST_F(ServerTest, PathsWithoutVersionWithSlashAndQuery) {
  start();
  for (const char* path : {"/v1/models", "/models", "/v1/models/", "/models?beta=true",
                           "/v1/models/?x=1&y", "http://localhost/v1/models"}) {
    EXPECT_EQ(get(path).status, 200) << path;
  }
}

TEST_F(ServerTest, PipelinedRequestsAreAnsweredInOrder) {
  engine_.set_script({.tokens = tokens("one"), .pause = milliseconds(20)});
  start();
  TestClient client(port());
  client.send_post("/v1/chat/completions", chat(), "x-request-id: a\r\n");
  client.send_get("/live", "x-request-id: b\r\n");
  client.send_get("/nothing", "x-request-id: c\r\n");
  EXPECT_EQ(client.reply().header("x-request-id"), "a");
  EXPECT_EQ(client.reply().header("request-id"), "b");
  EXPECT_EQ(client.reply().status, 404);
}

TEST_F(ServerTest, RequestsMayArriveByteByByte) {
  engine_.set_script({.tokens = tokens("one")});
  start();
  TestClient client(port());
  const std::string body = chat();
  const std::string request =
      "\r\nPOST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
      "Content-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  for (const char byte : request) {
    ASSERT_TRUE(client.send(std::string(1, byte)));
  }
  EXPECT_EQ(client.reply().status, 200);
}

TEST_F(ServerTest, ChunkedBodies) {
  engine_.set_script({.tokens = tokens("one")});
  start();
  TestClient client(port());
  const std::string body = chat();
  client.send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
      "Transfer-Encoding: chunked\r\n\r\n5\r\n" +
      body.substr(0, 5) + "\r\n");
  char size[16];
  std::snprintf(size, sizeof(size), "%zx\r\n", body.size() - 5);
  client.send(size + body.substr(5) + "\r\n0\r\n\r\n");
  EXPECT_EQ(client.reply().status, 200);
}

TEST_F(ServerTest, OldClientsGetAClosedConnection) {
  start();
  TestClient client(port());
  client.send("GET /live HTTP/1.0\r\n\r\n");
  const TestReply reply = client.reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("connection"), "close");
  EXPECT_FALSE(client.receive());
}

TEST_F(ServerTest, ExpectContinueIsAnsweredAtOnce) {
  engine_.set_script({.tokens = tokens("one")});
  start();
  TestClient client(port());
  const std::string body = chat();
  client.send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
      "Content-Length: " +
      std::to_string(body.size()) + "\r\n\r\n");
  ASSERT_TRUE(client.wait_for("\r\n\r\n"));
  EXPECT_EQ(client.reply().status, 100);
  client.send(body);
  EXPECT_EQ(client.reply().status, 200);
}

TEST_F(ServerTest, BodiesOverTheLimitAreRefusedBeforeTheyArrive) {
  config_.body_bytes_max = 1000;
  start();
  TestClient announced(port());
  announced.send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
      "Content-Length: 999999999999\r\n\r\n{");
  const TestReply reply = announced.reply();
  EXPECT_EQ(reply.status, 413);
  EXPECT_EQ(reply.json().at("error").at("code"), "request_too_large");
  TestClient grows(port());
  grows.send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
      "Transfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 20; ++i) {
    grows.send("64\r\n" + std::string(100, ' ') + "\r\n");
  }
  EXPECT_EQ(grows.reply().status, 413);
  EXPECT_EQ(post("/v1/chat/completions", std::string(1001, ' ')).status, 413);
  EXPECT_EQ(get("/live").status, 200);
}

TEST_F(ServerTest, CompressedBodies) {
  config_.body_bytes_max = 1 << 20;
  engine_.set_script({.tokens = tokens("one")});
  start();
  const std::string path = "/v1/chat/completions";
  const std::string gzip = "Content-Encoding: gzip\r\n";
  EXPECT_EQ(post(path, compressed(chat()), gzip).status, 200);
  EXPECT_EQ(post(path, compressed(chat()), "content-encoding: X-GZIP\r\n").status, 200);
  EXPECT_EQ(post(path, chat(), "Content-Encoding: identity\r\n").status, 200);
  EXPECT_EQ(post(path, compressed(chat()), "Content-Encoding: br\r\n").status, 415);
  for (const std::string& broken :
       {chat(), compressed(chat()).substr(0, 30), std::string("\x1f\x8b")}) {
    const TestReply reply = post(path, broken, gzip);
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(reply.json().at("error").at("code"), "bad_http");
  }
  const std::string bomb = compressed(std::string(std::size_t{64} << 20, ' '));
  ASSERT_LT(bomb.size(), config_.body_bytes_max);
  EXPECT_EQ(post(path, bomb, gzip).status, 413);
  EXPECT_EQ(post(path, compressed(std::string(1 << 19, ' ') + chat()), gzip).status, 200);
}

TEST_F(ServerTest, LargeUploadsShareABudget) {
  config_.body_bytes_max = 1 << 20;
  config_.body_bytes_total = 1 << 20;
  engine_.set_script({.tokens = tokens("one")});
  start();
  const std::string path = "/v1/chat/completions";
  const std::string large = std::string(800 << 10, ' ') + chat();
  const auto begin = [&](TestClient& client) {
    client.send("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                std::to_string(large.size()) + "\r\n\r\n" + large.substr(0, 700 << 10));
  };
  TestClient slow(port());
  begin(slow);
  const std::string held = std::to_string((700 << 10) - BodyBudget::kFreeBytes);
  const auto used = [&](const std::string& bytes) {
    return eventually([&] {
      return get("/metrics").body.find("\nserver_body_bytes " + bytes + "\n") != std::string::npos;
    });
  };
  ASSERT_TRUE(used(held));
  const TestReply refused = post(path, large);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.json().at("error").at("code"), "queue_full");
  EXPECT_EQ(refused.header("retry-after"), "1");
  EXPECT_EQ(refused.header("x-should-retry"), "true");
  EXPECT_EQ(post(path, chat()).status, 200) << "small ones go on";
  slow.send(large.substr(700 << 10));
  EXPECT_EQ(slow.reply().status, 200);
  EXPECT_EQ(post(path, large).status, 200) << "the budget is free again";
  auto vanishing = std::make_unique<TestClient>(port());
  begin(*vanishing);
  ASSERT_TRUE(used(held));
  vanishing.reset();
  EXPECT_TRUE(used("0"));
}

TEST_F(ServerTest, GarbageAndHugeHeadersAreRefused) {
  config_.header_bytes_max = 4096;
  start();
  for (const std::string garbage :
       {"\x16\x03\x01\x02garbage\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
        "POST /v1/completions HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        "POST /v1/completions HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"}) {
    TestClient client(port());
    client.send(garbage);
    const TestReply reply = client.reply();
    EXPECT_EQ(reply.status, 400) << garbage;
    EXPECT_EQ(reply.json().at("error").at("code"), "bad_http") << garbage;
    EXPECT_FALSE(client.receive());
  }
  TestClient huge(port());
  huge.send("GET /live HTTP/1.1\r\nx: " + std::string(5000, 'x') + "\r\n\r\n");
  EXPECT_EQ(huge.reply().status, 431);
}

TEST_F(ServerTest, SlowClientsAreCutOff) {
  config_.header_seconds_max = 1;
  config_.body_grace_seconds = 1;
  config_.idle_seconds_max = 1;
  start();
  TestClient headers(port());
  headers.send("GET /live HT");
  TestClient body(port());
  body.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{");
  TestClient silent(port());
  EXPECT_EQ(headers.reply().status, 408);
  EXPECT_EQ(body.reply().status, 408);
  EXPECT_FALSE(silent.receive());
}

TEST_F(ServerTest, ReadersThatStopAreCutOffAndCostNothing) {
  config_.write_seconds_max = 1;
  engine_.set_script({.tokens = tokens("text and more text and more "), .endless = true});
  start();
  TestClient client(port(), 4096);
  // 128 answers with log-probabilities: more than the buffers of the system take.
  std::string prompts = "\"a\"";
  for (int i = 1; i < 16; ++i) {
    prompts += ",\"a\"";
  }
  client.send_post("/v1/completions", "{\"prompt\":[" + prompts +
                                          "],\"n\":8,\"logprobs\":5,\"stream\":true,"
                                          "\"max_tokens\":-1,\"return_token_ids\":true}");
  ASSERT_TRUE(eventually([&] { return engine_.requests().size() == 128; }));
  ASSERT_TRUE(client.wait_for("data: "));
  // Reading on before the server gave up would be an end like any other.
  const auto is_cut_off = [&] {
    return get("/metrics").body.find("\nserver_client_disconnects_total 1\n") != std::string::npos;
  };
  ASSERT_TRUE(eventually(is_cut_off) || eventually(is_cut_off));
  EXPECT_EQ(engine_.running(), 0);
  EXPECT_FALSE(client.reply().complete);
  EXPECT_EQ(get("/live").status, 200);
}

TEST_F(ServerTest, TooManyConnectionsAreRefusedWithAReason) {
  config_.connections_max = 2;
  start();
  TestClient first(port());
  TestClient second(port());
  first.send_get("/live");
  second.send_get("/live");
  EXPECT_EQ(first.reply().status, 200);
  EXPECT_EQ(second.reply().status, 200);
  TestClient third(port());
  EXPECT_EQ(third.reply().status, 503);
  first.close();
  EXPECT_TRUE(eventually([&] {
    TestClient again(port());
    again.send_get("/live");
    return again.reply().status == 200;
  }));
}

TEST_F(ServerTest, AVanishedClientCancelsItsRequest) {
  engine_.set_script({.tokens = tokens("a"), .endless = true, .pause = milliseconds(5)});
  start();
  for (const bool stream : {true, false}) {
    auto client = std::make_unique<TestClient>(port());
    client->send_post("/v1/chat/completions", chat(stream ? "\"stream\":true" : ""));
    ASSERT_TRUE(eventually([&] { return engine_.running() == 1; }));
    if (stream) {
      ASSERT_TRUE(client->wait_for("data: "));
    }
    client.reset();
    EXPECT_TRUE(eventually([&] { return engine_.running() == 0; })) << stream;
  }
}

TEST_F(ServerTest, StopLetsRunningAnswersFinish) {
  engine_.set_script({.tokens = tokens("a few words to say"), .pause = milliseconds(20)});
  start();
  TestClient busy(port());
  busy.send_post("/v1/chat/completions", chat("\"stream\":true"));
  ASSERT_TRUE(busy.wait_for("data: "));
  TestClient idle(port());
  idle.send_get("/live");
  EXPECT_EQ(idle.reply().status, 200);
  server_->stop();
  EXPECT_FALSE(idle.receive());
  const TestReply reply = busy.reply();
  EXPECT_TRUE(reply.complete);
  EXPECT_EQ(reply.events().back(), "[DONE]");
  thread_.join();
  EXPECT_FALSE(TestClient(port()).connected());
}

TEST_F(ServerTest, TheSecondStopEndsAnswersWithAnError) {
  engine_.set_script({.tokens = tokens("a"), .endless = true, .pause = milliseconds(20)});
  start();
  TestClient stream(port());
  stream.send_post("/v1/chat/completions", chat("\"stream\":true"));
  ASSERT_TRUE(stream.wait_for("data: "));
  TestClient whole(port());
  whole.send_post("/v1/chat/completions", chat());
  ASSERT_TRUE(eventually([&] { return engine_.running() == 2; }));
  server_->stop();
  server_->stop();
  const TestReply told = stream.reply();
  EXPECT_TRUE(told.complete);
  ASSERT_GE(told.events().size(), 2U);
  EXPECT_EQ(told.events().back(), "[DONE]");
  const std::string error = told.events()[told.events().size() - 2];
  EXPECT_EQ(boost::json::parse(error).at("error").at("code"), "not_ready");
  EXPECT_EQ(whole.reply().status, 503);
  stream.close();
  whole.close();
  thread_.join();
}

TEST_F(ServerTest, TheThirdStopEndsAtOnce) {
  engine_.set_script({.tokens = tokens("a"), .endless = true, .pause = milliseconds(20)});
  start();
  TestClient busy(port());
  busy.send_post("/v1/chat/completions", chat("\"stream\":true"));
  ASSERT_TRUE(busy.wait_for("data: "));
  for (int i = 0; i < 3; ++i) {
    server_->stop();
  }
  thread_.join();
}

// Also when a client neither reads nor goes away.
TEST_F(ServerTest, DrainHasAnEnd) {
  config_.drain_seconds_max = 1;
  engine_.set_script({.tokens = tokens("a"), .endless = true, .pause = milliseconds(50)});
  start();
  TestClient busy(port());
  busy.send_post("/v1/messages", R"({"messages":[{"role":"user","content":"Hi"}],"stream":true})");
  ASSERT_TRUE(busy.wait_for("data: "));
  server_->stop();
  thread_.join();
  const TestReply reply = busy.reply();
  EXPECT_NE(reply.body.find("event: error\n"), std::string::npos);
  EXPECT_TRUE(reply.complete);
}

TEST_F(ServerTest, SilentStreamsGetPings) {
  config_.ping_seconds = 1;
  engine_.set_script({.tokens = tokens("late"), .first_pause = milliseconds(2500)});
  start();
  TestClient client(port());
  client.send_post("/v1/chat/completions", chat("\"stream\":true"));
  const TestReply reply = client.reply();
  const std::size_t ping = reply.body.find(": ping\n\n");
  ASSERT_NE(ping, std::string::npos);
  EXPECT_NE(reply.body.find(": ping\n\n", ping + 1), std::string::npos);
  EXPECT_EQ(reply.events().back(), "[DONE]");
}

TEST_F(ServerTest, KeysInEveryHeader) {
  config_.api_keys = {"secret", "other"};
  start();
  for (const char* right : {"Authorization: Bearer secret\r\n", "x-api-key: other\r\n",
                            "api-key: secret\r\n", "authorization: bearer other\r\n"}) {
    EXPECT_EQ(get("/v1/models", right).status, 200) << right;
  }
  for (const char* wrong :
       {"", "Authorization: Bearer secre\r\n", "x-api-key: secretsecret\r\n", "api-key: \r\n"}) {
    const TestReply reply = get("/v1/models", wrong);
    EXPECT_EQ(reply.status, 401) << wrong;
    EXPECT_EQ(reply.json().at("error").at("code"), "invalid_api_key");
  }
  // The words by which LiteLLM tells this error from others.
  EXPECT_EQ(get("/v1/models", "x-api-key: wrong\r\n").json().at("error").at("message"),
            "Incorrect API key provided");
  EXPECT_EQ(get("/live").status, 200);
  EXPECT_EQ(get("/version").status, 200);
  EXPECT_EQ(post("/v1/chat/completions", chat()).status, 401);
}

TEST_F(ServerTest, WebPagesAndForeignHosts) {
  start();
  TestClient client(port());
  client.send_get("/v1/chat/completions",
                  "Origin: http://localhost:3000\r\nAccess-Control-Request-Headers: x-a,x-b\r\n",
                  "OPTIONS");
  const TestReply preflight = client.reply();
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.header("access-control-allow-origin"), "http://localhost:3000");
  EXPECT_EQ(preflight.header("access-control-allow-headers"), "x-a,x-b");
  const TestReply foreign = get("/v1/models", "Origin: https://evil.example\r\n");
  EXPECT_EQ(foreign.header("access-control-allow-origin"), "");
  TestClient rebound(port());
  rebound.send("GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  EXPECT_EQ(rebound.reply().status, 403);
}

TEST_F(ServerTest, RequestIdsAreEchoedOrMade) {
  start();
  EXPECT_EQ(get("/live", "X-Request-Id: abc-1\r\n").header("x-request-id"), "abc-1");
  EXPECT_EQ(get("/nothing", "X-Request-Id: abc-2\r\n").header("request-id"), "abc-2");
  const TestReply made = get("/live", "X-Request-Id: " + std::string(129, 'x') + "\r\n");
  EXPECT_EQ(made.header("x-request-id").rfind("req_", 0), 0U);
  EXPECT_EQ(made.header("x-served-model"), "tiny");
}

TEST_F(ServerTest, WhileTheModelLoadsOnlyWhatNeedsItWaits) {
  start_without_engine();
  server_->set_progress(0.25);
  const TestReply ready = get("/ready");
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(ready.header("retry-after"), "1");
  const auto body = boost::json::parse(ready.body);
  EXPECT_EQ(body.at("status"), "loading");
  EXPECT_EQ(body.at("progress"), 0.25);
  for (const char* path : {"/live", "/v1/models", "/version", "/metrics"}) {
    EXPECT_EQ(get(path).status, 200) << path;
  }
  EXPECT_EQ(post("/tokenize", R"({"content":"Hi"})").status, 200);
  for (const auto& [path, sent] :
       {std::pair<std::string, std::string>("/v1/chat/completions", chat()),
        {"/v1/completions", R"({"prompt":"Hi"})"},
        {"/v1/responses", R"({"input":"Hi"})"},
        {"/v1/cache/pins", R"({"name":"a","prompt":"Hi"})"},
        {"/v1/cache/flush", ""}}) {
    const TestReply reply = post(path, sent);
    EXPECT_EQ(reply.status, 503) << path;
    EXPECT_EQ(reply.header("retry-after"), "1") << path;
    EXPECT_THAT(reply.body, testing::HasSubstr("the model is loading")) << path;
  }
  EXPECT_EQ(get("/v1/cache").status, 503);
  EXPECT_EQ(post("/v1/messages", R"({"max_tokens":1,"messages":[{"role":"user","content":"Hi"}]})",
                 "anthropic-version: 2023-06-01\r\n")
                .status,
            529);
  server_->set_engine(engine_);
  EXPECT_TRUE(eventually([&] { return get("/ready").status == 200; }));
  EXPECT_EQ(boost::json::parse(get("/ready").body).as_object().count("progress"), 0U);
  EXPECT_EQ(post("/v1/chat/completions", chat()).status, 200);
}

TEST_F(ServerTest, BadAddressesAndPortsAreErrors) {
  config_.host = "not an address";
  auto server = HttpServer::create(config_, engine_.config(), model());
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().where, "host");
  config_.host = "127.0.0.1";
  auto first = HttpServer::create(config_, engine_.config(), model());
  ASSERT_TRUE(first);
  config_.port = (*first)->port();
  EXPECT_EQ((*first)->url(), "http://127.0.0.1:" + std::to_string(config_.port));
  auto second = HttpServer::create(config_, engine_.config(), model());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::io);
  config_.cors_origins = {"*"};
  EXPECT_FALSE(HttpServer::create(config_, engine_.config(), model()));
}

}  // namespace
}  // namespace sluice
