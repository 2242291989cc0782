// For tests: a running server over the fake engine and the text side of the embedded model.
#pragma once

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/fake_engine.h"
#include "server/http_server.h"
#include "server/test_client.h"

namespace sluice {

class ServerTest : public ::testing::Test {
 protected:
  explicit ServerTest(std::int64_t context_max = 256)
      : engine_({.context_max = context_max, .queue_max = 200}) {
    config_.port = 0;
    config_.ping_seconds = 0;
    // Made here, before the server's threads: how libspdlog hands it to them while making it is out
    // of ThreadSanitizer's sight.
    spdlog::default_logger_raw();
  }
  ~ServerTest() override { shut_down(); }

  static const ServedModel& model() {
    static const ServedModel loaded = load();
    return loaded;
  }

  static std::vector<TokenId> tokens(const std::string& text) {
    return model().tokenizer.encode(text, ControlTokens::parse).value();
  }

  // What the server of this test serves.
  virtual const ServedModel& served() const { return model(); }

  // Uses config_ as the test has set it.
  void start() {
    start_without_engine();
    server_->set_engine(engine_);
  }
  void start_without_engine() {
    auto server = HttpServer::create(config_, engine_.config(), served());
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    thread_ = std::thread([this] { server_->run(); });
  }

  void shut_down() {
    if (thread_.joinable()) {
      for (int i = 0; i < 3; ++i) {  // at once
        server_->stop();
      }
      thread_.join();
    }
  }

  std::uint16_t port() const { return server_->port(); }

  TestReply get(const std::string& path, const std::string& headers = {}) {
    TestClient client(port());
    client.send_get(path, headers);
    return client.reply();
  }
  TestReply post(const std::string& path, const std::string& body,
                 const std::string& headers = {}) {
    TestClient client(port());
    client.send_post(path, body, headers);
    return client.reply();
  }

  // A chat request with one user message and these further fields.
  static std::string chat(const std::string& fields = {}) {
    return R"({"messages":[{"role":"user","content":"Hi"}])" +
           (fields.empty() ? std::string() : "," + fields) + "}";
  }

  // Whether `condition` becomes true within a few seconds.
  template <typename Condition>
  static bool eventually(Condition condition) {
    for (int i = 0; i < 2000; ++i) {
      if (condition()) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
  }

  ServerConfig config_;
  FakeEngine engine_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;

 protected:
  static ServedModel load() {
    const std::string directory = std::string(SLUICE_SOURCE_DIR) + "/models/tiny";
    auto tokenizer = Tokenizer::load(directory).value();
    auto generation = load_generation_config(directory, &tokenizer).value();
    return {.tokenizer = std::move(tokenizer),
            .chat_template = ChatTemplate::load(directory).value(),
            .generation = std::move(generation),
            .id = "tiny",
            .aliases = {"small"},
            .created = 1767225600,
            .fingerprint = "fp_test"};
  }
};

}  // namespace sluice
