// Calls of the history as the tokens they were: what is remembered, for whom, and where it goes.
#include "api/tools/call_replay.h"

#include <gtest/gtest.h>

#include "api/fields/json_text.h"
#include "api/tools/call_memory.h"

namespace sluice {
namespace {

FinishedCall call(const std::string& id, const std::string& arguments = R"({"a": 1})",
                  std::size_t tokens = 2) {
  return {{id, "f"}, arguments, std::vector<TokenId>(tokens, 5), false};
}

boost::json::object object(const char* text) {
  return parse_json(text)->as_object();
}

TEST(CallMemory, FindsEqualCallsOfTheSameOwner) {
  CallMemory memory(1 << 20);
  memory.remember("me", call("call_1", R"({"a": 1, "b": [2.0]})"));
  const auto equal = object(R"({"b":[2.0],"a":1})");
  EXPECT_EQ(memory.find("me", "call_1", "f", equal), (std::vector<TokenId>{5, 5}));
  EXPECT_EQ(memory.find("you", "call_1", "f", equal), std::nullopt);
  EXPECT_EQ(memory.find("me", "call_2", "f", equal), std::nullopt);
  EXPECT_EQ(memory.find("me", "call_1", "g", equal), std::nullopt);
  EXPECT_EQ(memory.find("me", "call_1", "f", object(R"({"a":1})")), std::nullopt);
  EXPECT_EQ(memory.find("me", "", "f", equal), std::nullopt);
}

TEST(CallMemory, ForgetsTheLeastRecentlyUsedBeyondItsBytes) {
  CallMemory memory(2000);
  const auto arguments = object(R"({"a":1})");
  memory.remember("", call("1"));
  memory.remember("", call("2"));
  memory.remember("", call("3"));
  EXPECT_TRUE(memory.find("", "1", "f", arguments));
  memory.remember("", call("4"));
  EXPECT_TRUE(memory.find("", "1", "f", arguments));
  EXPECT_FALSE(memory.find("", "2", "f", arguments));
  memory.remember("", call("huge", R"({"a": 1})", 1000));
  EXPECT_FALSE(memory.find("", "huge", "f", arguments));
  EXPECT_TRUE(memory.find("", "4", "f", arguments));
  memory.remember("", call("5", "{broken"));
  memory.remember("", call("6", R"({"a": 1})", 0));
  EXPECT_FALSE(memory.find("", "6", "f", arguments));
}

class CallReplayTest : public testing::Test {
 protected:
  static const Tokenizer& tokenizer() {
    static const auto loaded =
        Tokenizer::load(std::string(SLUICE_SOURCE_DIR) + "/models/tiny").value();
    return loaded;
  }
  static std::vector<std::int32_t> encode(const std::string& text) {
    return tokenizer().encode(text, ControlTokens::parse).value();
  }
};

const std::string kHead =
    "<|im_start|>system\n<tool_call>example</tool_call><|im_end|>\n"
    "<|im_start|>user\n";
const std::string kUser = "<tool_call>mine</tool_call>";
const std::string kTurn = "<|im_end|>\n<|im_start|>assistant\n";
const std::string kCall = "<tool_call>\none\n</tool_call>";
const std::string kOther = "<tool_call>\ntwo\n</tool_call>";

TEST_F(CallReplayTest, OnlyTheAssistantsOwnCallsAreReplaced) {
  PromptText prompt{kHead + kUser + kTurn + kCall + "\n" + kOther + "<|im_end|>\n",
                    {{kHead.size(), kHead.size() + kUser.size()}}};
  const auto plain = tokenizer().encode(prompt).value();
  const std::vector<ReplayedCall> none(2);
  EXPECT_EQ(encode_prompt(prompt, none, tokenizer()).value(), plain);

  const std::vector<ReplayedCall> second{std::nullopt, encode(kOther)};
  EXPECT_EQ(encode_prompt(prompt, second, tokenizer()).value(), plain);

  const std::vector<std::int32_t> odd = encode("<tool_call>\no");
  const std::vector<ReplayedCall> first{odd, std::nullopt};
  std::vector<std::int32_t> want(plain.begin(), plain.end());
  const std::vector<std::int32_t> old = encode(kCall);
  const auto at = std::find_end(want.begin(), want.end(), old.begin(), old.end());
  ASSERT_NE(at, want.end());
  const auto place = want.erase(at, at + std::ssize(old));
  want.insert(place, odd.begin(), odd.end());
  EXPECT_EQ(encode_prompt(prompt, first, tokenizer()).value(), want);
}

TEST_F(CallReplayTest, ADifferentNumberOfCallsLeavesThePromptAsRendered) {
  const PromptText prompt{kHead + "x" + kTurn + kCall + "<|im_end|>\n", {}};
  const auto plain = tokenizer().encode(prompt).value();
  const std::vector<ReplayedCall> two{encode("a"), encode("b")};
  EXPECT_EQ(encode_prompt(prompt, two, tokenizer()).value(), plain);
}

}  // namespace
}  // namespace sluice
