// What a seed decides, how conversations grow, and what arrivals look like.
#include "load/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <string>
#include <vector>

namespace sluice::load {
namespace {

namespace json = boost::json;

std::string first_body(const WorkloadOptions& options, std::uint64_t number) {
  return json::serialize(make_conversation(options, number)->next_body());
}

std::size_t words_of(const json::value& message) {
  const std::string_view text = message.at("content").as_string();
  return 1 + static_cast<std::size_t>(std::ranges::count(text, ' '));
}

TEST(Workload, NamesOfKinds) {
  for (const WorkloadKind kind : {WorkloadKind::chat, WorkloadKind::agent, WorkloadKind::prompts}) {
    EXPECT_EQ(workload_from_name(to_string(kind)), kind);
  }
  EXPECT_EQ(workload_from_name("none"), std::nullopt);
}

TEST(Workload, TheSeedDecides) {
  for (const WorkloadKind kind : {WorkloadKind::chat, WorkloadKind::agent, WorkloadKind::prompts}) {
    const WorkloadOptions options{.kind = kind, .seed = 7};
    EXPECT_EQ(first_body(options, 3), first_body(options, 3));
    EXPECT_NE(first_body(options, 3), first_body(options, 4));
    EXPECT_NE(first_body(options, 3), first_body({.kind = kind, .seed = 8}, 3));
  }
}

TEST(Workload, ConversationsShareTheSystemPromptOnly) {
  const WorkloadOptions options{.kind = WorkloadKind::agent, .system_words = 90};
  const json::object one = make_conversation(options, 0)->next_body();
  const json::object other = make_conversation(options, 1)->next_body();
  const json::array& messages = one.at("messages").as_array();
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0].at("role"), "system");
  EXPECT_EQ(words_of(messages[0]), 90U);
  EXPECT_EQ(messages[0], other.at("messages").at(0));
  EXPECT_NE(messages[1], other.at("messages").at(1));
  EXPECT_EQ(one.at("tools"), other.at("tools"));
  EXPECT_EQ(one.at("tools").as_array().size(), 4U);
  EXPECT_FALSE(one.contains("model") || one.contains("stream"));
}

TEST(Workload, PromptsAreSingleAndShareNothing) {
  const WorkloadOptions options{
      .kind = WorkloadKind::prompts, .prompt_words = 100, .max_tokens = 9};
  const auto conversation = make_conversation(options, 0);
  const json::object body = conversation->next_body();
  const json::array& messages = body.at("messages").as_array();
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].at("role"), "user");
  EXPECT_GE(words_of(messages[0]), 50U);
  EXPECT_LE(words_of(messages[0]), 150U);
  EXPECT_EQ(body.at("max_tokens"), 9);
  EXPECT_FALSE(body.contains("tools"));
  ChatAnswer reply;
  conversation->take(&reply);
  EXPECT_TRUE(conversation->is_over());
}

TEST(Workload, EachTurnHoldsAllBefore) {
  const auto conversation = make_conversation({.kind = WorkloadKind::chat, .turns = 3}, 0);
  json::array before = conversation->next_body().at("messages").as_array();
  for (int turn = 0; turn < 2; ++turn) {
    ChatAnswer reply;
    reply.text = "answer " + std::to_string(turn);
    conversation->take(&reply);
    ASSERT_FALSE(conversation->is_over());
    const json::array after = conversation->next_body().at("messages").as_array();
    ASSERT_EQ(after.size(), before.size() + 2);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
    EXPECT_EQ(after[before.size()], (json::value{{"role", "assistant"}, {"content", reply.text}}));
    EXPECT_EQ(after.back().at("role"), "user");
    before = after;
  }
  const ChatAnswer last;
  conversation->take(&last);
  EXPECT_TRUE(conversation->is_over());
}

TEST(Workload, CallsGetTheirResults) {
  const auto conversation = make_conversation({.kind = WorkloadKind::agent, .turns = 3}, 0);
  ChatAnswer reply;
  for (const char* id : {"a", "b"}) {
    reply.tool_calls.push_back(
        {{"id", id}, {"type", "function"}, {"function", {{"name", "f"}, {"arguments", "{}"}}}});
  }
  conversation->take(&reply);
  json::array messages = conversation->next_body().at("messages").as_array();
  ASSERT_EQ(messages.size(), 5U);
  EXPECT_EQ(messages[2].at("tool_calls"), reply.tool_calls);
  EXPECT_EQ(messages[3].at("role"), "tool");
  EXPECT_EQ(messages[3].at("tool_call_id"), "a");
  EXPECT_EQ(messages[4].at("tool_call_id"), "b");
  reply.tool_calls.clear();
  conversation->take(&reply);
  messages = conversation->next_body().at("messages").as_array();
  EXPECT_EQ(messages.back().at("role"), "user");
  EXPECT_FALSE(messages[5].as_object().contains("tool_calls"));
}

TEST(Workload, AFailureEndsTheConversation) {
  const auto conversation = make_conversation({.turns = 3}, 0);
  conversation->take(nullptr);
  EXPECT_TRUE(conversation->is_over());
}

TEST(ArrivalsTest, PoissonOfTheSeed) {
  Arrivals arrivals(50, 1);
  Arrivals same(50, 1);
  Arrivals other(50, 2);
  EXPECT_NE(arrivals.next(), other.next());
  double before = same.next();
  std::vector<double> gaps;
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i) {
    const double at = arrivals.next();
    ASSERT_EQ(at, same.next());
    gaps.push_back(at - before);
    ASSERT_GE(gaps.back(), 0.0);
    before = at;
  }
  // An exponential distribution: its mean is its deviation, and 1/e of it is above the mean.
  double sum = 0;
  double squares = 0;
  for (const double gap : gaps) {
    sum += gap;
    squares += gap * gap;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 0.02, 0.0005);
  EXPECT_NEAR(std::sqrt(squares / kCount - mean * mean), 0.02, 0.0008);
  const auto above = std::ranges::count_if(gaps, [](double gap) { return gap > 0.02; });
  EXPECT_NEAR(static_cast<double>(above) / kCount, std::exp(-1.0), 0.012);
}

}  // namespace
}  // namespace sluice::load
