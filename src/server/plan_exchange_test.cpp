// Requests whose plans take long: others go on meanwhile, and nobody works for clients that left.
#include "server/plan_exchange.h"

#include <future>

#include "server/plan_pool.h"
#include "server/test_server.h"

namespace sluice {
namespace {

// Takes half a second to encode: never the same text, which would be remembered.
std::string long_chat() {
  static int calls = 0;
  std::string text = std::to_string(++calls);
  while (text.size() < (std::size_t{1} << 20)) {
    text += "words and more words ";
  }
  return R"({"max_tokens":1,"messages":[{"role":"user","content":")" + text + "\"}]}";
}

class PlanExchangeTest : public ServerTest {
 protected:
  PlanExchangeTest() : ServerTest(4'000'000) {
    config_.threads = 1;
    engine_.set_script({.tokens = tokens("ok")});
  }
};

TEST_F(PlanExchangeTest, OthersGoOnMeanwhile) {
  start();
  ASSERT_TRUE(eventually([this] { return get("/ready").status == 200; }));
  TestClient slow(port());
  ASSERT_TRUE(slow.send_post("/v1/chat/completions", long_chat()));
  EXPECT_EQ(get("/live").status, 200);
  EXPECT_EQ(post("/v1/chat/completions", chat(R"("max_tokens":1)")).status, 200);
  ASSERT_EQ(engine_.requests().size(), 1U);  // the short one alone
  EXPECT_EQ(slow.reply().status, 200);
  EXPECT_EQ(engine_.requests().size(), 2U);
}

TEST_F(PlanExchangeTest, WhoLeavesIsForgotten) {
  start();
  ASSERT_TRUE(eventually([this] { return get("/ready").status == 200; }));
  {
    TestClient client(port());
    ASSERT_TRUE(client.send_post("/v1/chat/completions", long_chat()));
    // The request is there as a whole once its connection waits for the plan.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  // Plans come back in the order in which two threads make them: the third after the first.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(post("/v1/chat/completions", long_chat()).status, 200);
  }
  EXPECT_EQ(engine_.requests().size(), 2U);
}

TEST_F(PlanExchangeTest, ShuttingDownAnswersThem) {
  config_.drain_seconds_max = 0;
  start();
  ASSERT_TRUE(eventually([this] { return get("/ready").status == 200; }));
  TestClient client(port());
  ASSERT_TRUE(client.send_post("/v1/chat/completions", long_chat()));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  server_->stop();
  const TestReply reply = client.reply();
  EXPECT_EQ(reply.status, 503) << reply.body;
  EXPECT_TRUE(engine_.requests().empty());
}

TEST(PlanPool, HasRoomForSoManyTasksAndBytes) {
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  std::atomic<int> done{0};
  {
    PlanPool pool({.tasks_at_once = 1, .tasks_max = 3, .bytes_max = 10});
    const auto task = [gone, &done] {
      gone.wait();
      done.fetch_add(1);
    };
    EXPECT_TRUE(pool.post(4, task));
    EXPECT_FALSE(pool.post(7, task));  // bytes
    EXPECT_TRUE(pool.post(6, task));
    EXPECT_TRUE(pool.post(0, task));
    EXPECT_FALSE(pool.post(0, task));  // tasks
    EXPECT_FALSE(pool.stopping().load());
    go.set_value();
  }
  EXPECT_EQ(done.load(), 3);
}

// One task at a time, two that wait: they hold up nobody but a third that wants to wait.
TEST(PlanPool, ATaskThatWaitsLetsAnotherOneRun) {
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  std::promise<void> both_wait;
  std::atomic<int> waiting{0};
  std::promise<bool> third_waits;
  std::atomic<int> done{0};
  {
    PlanPool pool({.tasks_at_once = 1, .waits_max = 2});
    for (int i = 0; i < 2; ++i) {
      pool.post(0, [&] {
        const PlanPool::Wait wait = pool.begin_wait();
        EXPECT_TRUE(wait);
        if (waiting.fetch_add(1) == 1) {
          both_wait.set_value();
        }
        gone.wait();
        done.fetch_add(1);
      });
    }
    both_wait.get_future().wait();
    pool.post(0, [&] { third_waits.set_value(pool.begin_wait() != nullptr); });
    EXPECT_FALSE(third_waits.get_future().get());
    EXPECT_EQ(done.load(), 0);
    go.set_value();
  }
  EXPECT_EQ(done.load(), 2);
}

}  // namespace
}  // namespace sluice
