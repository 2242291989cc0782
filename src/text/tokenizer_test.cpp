#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/testdata/temporary_directory.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int32_t kImStart = 601;
constexpr std::int32_t kImEnd = 602;
constexpr std::int32_t kThink = 624;
constexpr std::int32_t kFirstControl = 600;

Tokenizer load() {
  Result<Tokenizer> tokenizer = Tokenizer::load(test_tokenizer_directory());
  if (!tokenizer) {
    ADD_FAILURE() << tokenizer.error().message;
    std::abort();
  }
  return std::move(*tokenizer);
}

std::vector<std::int32_t> controls(const std::vector<std::int32_t>& ids) {
  std::vector<std::int32_t> result;
  for (const std::int32_t id : ids) {
    if (id >= kFirstControl) {
      result.push_back(id);
    }
  }
  return result;
}

TEST(Tokenizer, KnowsIdsOfBothFiles) {
  const Tokenizer tokenizer = load();
  EXPECT_EQ(tokenizer.vocab_size(), 633);
  EXPECT_EQ(tokenizer.token_id("<|endoftext|>"), 600);
  EXPECT_EQ(tokenizer.token_id("<|im_end|>"), kImEnd);
  EXPECT_EQ(tokenizer.token_id("<|audio_pad|>"), 632);  // only in tokenizer_config.json
  EXPECT_EQ(tokenizer.token_id("<|no_such|>"), std::nullopt);
  EXPECT_EQ(tokenizer.token_id("\xFF"), std::nullopt);
  EXPECT_EQ(tokenizer.eos_token_id(), kImEnd);
}

TEST(Tokenizer, TellsSpecialTokensFromTagsInText) {
  const Tokenizer tokenizer = load();
  EXPECT_TRUE(tokenizer.is_special(kImStart));
  EXPECT_FALSE(tokenizer.is_special(kThink));
  EXPECT_FALSE(tokenizer.is_special(0));
  EXPECT_FALSE(tokenizer.is_special(-1));
  EXPECT_FALSE(tokenizer.is_special(633));
}

TEST(Tokenizer, TokenBytesAreTheBytesOfDecode) {
  const Tokenizer tokenizer = load();
  std::string all_bytes;
  for (std::int32_t id = 0; id < 256; ++id) {
    ASSERT_EQ(tokenizer.token_bytes(id).size(), 1U);
    all_bytes += tokenizer.token_bytes(id);
  }
  std::ranges::sort(all_bytes, {}, [](char byte) { return static_cast<unsigned char>(byte); });
  for (std::size_t byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(static_cast<unsigned char>(all_bytes[byte]), byte);
  }
  EXPECT_EQ(tokenizer.token_bytes(kThink), "<think>");
  EXPECT_EQ(tokenizer.token_bytes(-1), "");
  EXPECT_EQ(tokenizer.token_bytes(633), "");
  EXPECT_EQ(tokenizer.token_bytes(std::numeric_limits<std::int32_t>::max()), "");
}

TEST(Tokenizer, ParsesControlTokensOnlyWhenAsked) {
  const Tokenizer tokenizer = load();
  const std::string text = "<|im_start|>user\nHi<|im_end|>";
  EXPECT_THAT(controls(*tokenizer.encode(text, ControlTokens::parse)),
              ElementsAre(kImStart, kImEnd));
  const auto literal = *tokenizer.encode(text, ControlTokens::literal);
  EXPECT_THAT(controls(literal), ElementsAre());
  EXPECT_EQ(*tokenizer.decode(literal, true), text);
}

TEST(Tokenizer, LongestSpellingAtTheLeftmostPositionWins) {
  const Tokenizer tokenizer = load();
  const auto ids = *tokenizer.encode("<tts_text_bos_single><tts_text_bos>", ControlTokens::parse);
  EXPECT_THAT(ids, ElementsAre(631, 629));
  EXPECT_THAT(controls(*tokenizer.encode("<|im_<|im_end|>end|>", ControlTokens::parse)),
              ElementsAre(kImEnd));
}

TEST(Tokenizer, LiteralRangesHoldOrdinaryText) {
  const Tokenizer tokenizer = load();
  PromptText prompt;
  prompt.text = "<|im_start|>say <|im_end|> now<|im_end|>";
  prompt.literal_ranges = {{16, 26}};
  const auto ids = *tokenizer.encode(prompt);
  EXPECT_THAT(controls(ids), ElementsAre(kImStart, kImEnd));
  EXPECT_EQ(*tokenizer.decode(ids, false), prompt.text);

  // Not a split point: the text between the tokens is encoded in one piece.
  auto expected = *tokenizer.encode("say <|im_end|> now", ControlTokens::literal);
  expected.insert(expected.begin(), kImStart);
  expected.push_back(kImEnd);
  EXPECT_EQ(ids, expected);
}

TEST(Tokenizer, AControlTokenMayNotReachIntoALiteralRange) {
  const Tokenizer tokenizer = load();
  PromptText prompt;
  prompt.text = "<|im_end|><|im_end|>";
  for (std::size_t begin = 0; begin < 10; ++begin) {
    prompt.literal_ranges = {{begin, begin + 1}};
    const auto ids = *tokenizer.encode(prompt);
    EXPECT_THAT(controls(ids), ElementsAre(kImEnd)) << begin;
    EXPECT_EQ(*tokenizer.decode(ids, false), prompt.text) << begin;
  }
  prompt.literal_ranges = {{4, 4}};  // empty: forbids nothing
  EXPECT_THAT(controls(*tokenizer.encode(prompt)), ElementsAre(kImEnd, kImEnd));
}

TEST(Tokenizer, BadRangesAreRefused) {
  const Tokenizer tokenizer = load();
  using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;
  for (const Ranges& ranges : {Ranges{{2, 1}}, Ranges{{0, 9}}, Ranges{{3, 4}, {2, 3}},
                               Ranges{{0, 2}, {1, 3}}, Ranges{{0, 1}} /* inside the é */}) {
    const auto ids =
        tokenizer.encode(PromptText{"\xC3\xA9"
                                    "cde",
                                    ranges});
    ASSERT_FALSE(ids);
    EXPECT_EQ(ids.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(ids.error().message, HasSubstr("literal_ranges["));
  }
}

TEST(Tokenizer, NormalisesToNfc) {
  const Tokenizer tokenizer = load();
  const auto composed = *tokenizer.encode("Z\xC3\xBCrich", ControlTokens::parse);
  EXPECT_EQ(*tokenizer.encode("Zu\xCC\x88rich", ControlTokens::parse), composed);
}

TEST(Tokenizer, InvalidUtf8IsRefusedWithItsPlace) {
  const Tokenizer tokenizer = load();
  for (const std::string_view text :
       {"abc\xFF", "abc\xC3", "abc\xED\xA0\x80", "abc\xF4\x90\x80\x80"}) {
    const auto ids = tokenizer.encode(text, ControlTokens::parse);
    ASSERT_FALSE(ids);
    EXPECT_EQ(ids.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(ids.error().message, HasSubstr("not UTF-8 at byte 3"));
  }
}

TEST(Tokenizer, EmptyTextHasNoTokens) {
  const Tokenizer tokenizer = load();
  EXPECT_TRUE(tokenizer.encode("", ControlTokens::parse)->empty());
  EXPECT_TRUE(tokenizer.encode(PromptText{})->empty());
  EXPECT_EQ(*tokenizer.decode({}, true), "");
}

TEST(Tokenizer, UnknownIdsAreRefusedByName) {
  const Tokenizer tokenizer = load();
  for (const std::int32_t id : {-1, 633, 700, std::numeric_limits<std::int32_t>::max()}) {
    const std::vector<std::int32_t> ids{0, 1, id};
    const auto text = tokenizer.decode(ids, false);
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(text.error().message, HasSubstr("token_ids[2] = " + std::to_string(id)));
    EXPECT_THAT(text.error().message, HasSubstr("632"));
  }
}

TEST(Tokenizer, LongInputsStayLinear) {
  const Tokenizer tokenizer = load();
  for (const char c : {'a', ' ', '\n', '<', '!'}) {
    const std::string text(1 << 20, c);
    EXPECT_EQ(*tokenizer.decode(*tokenizer.encode(text, ControlTokens::parse), false), text);
  }
}

TEST(Tokenizer, TooLongInputsAreRefused) {
  const Tokenizer tokenizer = load();
  const auto ids = tokenizer.encode(std::string(9 << 20, 'a'), ControlTokens::parse);
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().code, ErrorCode::resource_exhausted);
}

TEST(Tokenizer, ThreadsMayShareOne) {
  const Tokenizer tokenizer = load();
  const std::string text = "The river <|im_end|> opens the gate; I'm sure they'll be back.";
  const auto want = *tokenizer.encode(text, ControlTokens::parse);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        EXPECT_EQ(*tokenizer.encode(text, ControlTokens::parse), want);
        EXPECT_EQ(*tokenizer.decode(want, false), text);
      }
    });
  }
}

// Text that grows, is cut short, changes in the middle and comes again, with everything that could
// hold two lines together, encoded by one that remembers and by one that does not.
TEST(Tokenizer, WhatIsRememberedDoesNotShow) {
  const Tokenizer tokenizer = load();
  constexpr std::array<std::string_view, 16> kPieces{
      "word", "Word", "\n", "\n\n",      "\r\n",     " ",          "  ",      "\t",
      "1",    ".",    "'s", "e\xCC\x81", "\xCC\x81", "<|im_end|>", "<think>", "\n/A"};
  std::mt19937 random(7);
  const auto below = [&random](std::size_t limit) { return random() % limit; };
  std::string text;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 400; ++i) {
      text += kPieces[below(kPieces.size())];
    }
    if (round % 5 == 4) {  // where pieces begin: characters stay whole
      const std::size_t newline = text.find('\n', below(text.size()));
      text.erase(newline == std::string::npos ? 0 : newline);
    }
    const std::size_t range = text.find('\n', below(text.size() + 1));
    PromptText prompt{.text = text, .literal_ranges = {}, .owner = round % 3 == 0 ? "a" : "b"};
    if (range != std::string::npos) {
      prompt.literal_ranges.emplace_back(range, text.size());
    }
    const auto remembered = tokenizer.encode(prompt);
    prompt.owner.reset();
    ASSERT_EQ(*remembered, *tokenizer.encode(prompt)) << text;
  }
}

class TokenizerFiles : public testing::Test {
 protected:
  Error error_of_load() const {
    const Result<Tokenizer> tokenizer = Tokenizer::load(directory_.path());
    EXPECT_FALSE(tokenizer);
    return tokenizer ? Error{} : tokenizer.error();
  }

  std::string tokenizer_json() const {
    std::ifstream file(test_tokenizer_directory() / "tokenizer.json", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // tokenizer.json with one piece of text replaced.
  void write_changed(const std::string& old_text, const std::string& new_text) const {
    std::string json = tokenizer_json();
    const std::size_t at = json.find(old_text);
    ASSERT_NE(at, std::string::npos) << old_text;
    directory_.write("tokenizer.json", json.replace(at, old_text.size(), new_text));
  }

  TemporaryDirectory directory_;
};

TEST_F(TokenizerFiles, MissingFileIsNotFound) {
  EXPECT_EQ(error_of_load().code, ErrorCode::not_found);
}

TEST_F(TokenizerFiles, TokenizerConfigIsOptional) {
  directory_.copy("tokenizer.json");
  const Result<Tokenizer> tokenizer = Tokenizer::load(directory_.path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->vocab_size(), 626);
  EXPECT_EQ(tokenizer->eos_token_id(), std::nullopt);
}

TEST_F(TokenizerFiles, EveryTruncationIsCorrupt) {
  const std::string json = tokenizer_json();
  for (std::size_t size = 0; size + 2 < json.size(); size += 1 + json.size() / 40) {
    directory_.write("tokenizer.json", json.substr(0, size));
    const Error error = error_of_load();
    EXPECT_EQ(error.code, ErrorCode::corrupt_data) << size;
    EXPECT_THAT(error.message, HasSubstr("tokenizer.json"));
  }
}

TEST_F(TokenizerFiles, FlippedBytesNeverCrash) {
  const std::string json = tokenizer_json();
  for (std::size_t at = 0; at < json.size(); at += 1 + json.size() / 300) {
    std::string changed = json;
    changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 7)));
    directory_.write("tokenizer.json", changed);
    const Result<Tokenizer> tokenizer = Tokenizer::load(directory_.path());
    if (tokenizer) {
      (void)tokenizer->encode("Some text, 12 <|im_end|>", ControlTokens::parse);
    }
  }
}

TEST_F(TokenizerFiles, ConfigMustAgreeOnIds) {
  directory_.copy("tokenizer.json");
  directory_.write("tokenizer_config.json",
                   R"({"added_tokens_decoder": {"640": {"content": "<new>", "special": true}}})");
  const Error error = error_of_load();
  EXPECT_EQ(error.code, ErrorCode::corrupt_data);
  EXPECT_THAT(error.message, HasSubstr("\"<new>\" is listed as 640"));
}

TEST_F(TokenizerFiles, AddedTokenIdsMustAgreeInTokenizerJson) {
  write_changed("\"id\": 603,", "\"id\": 903,");
  const Error error = error_of_load();
  EXPECT_EQ(error.code, ErrorCode::corrupt_data);
  EXPECT_THAT(error.message, HasSubstr("listed as 903"));
}

TEST_F(TokenizerFiles, EosTokenMustExist) {
  directory_.copy("tokenizer.json");
  directory_.write("tokenizer_config.json", R"({"eos_token": {"content": "</s>"}})");
  const Error error = error_of_load();
  EXPECT_EQ(error.code, ErrorCode::corrupt_data);
  EXPECT_THAT(error.message, HasSubstr("eos_token \"</s>\""));
}

TEST_F(TokenizerFiles, MalformedConfigIsCorrupt) {
  directory_.copy("tokenizer.json");
  for (const std::string_view config :
       {"", "[]", "{\"added_tokens_decoder\": {\"x\": {\"content\": \"a\"}}}",
        "{\"added_tokens_decoder\": {\"-1\": {\"content\": \"a\"}}}",
        "{\"added_tokens_decoder\": {\"633\": {}}}", "{\"eos_token\": 5}"}) {
    directory_.write("tokenizer_config.json", config);
    EXPECT_EQ(error_of_load().code, ErrorCode::corrupt_data) << config;
  }
}

TEST_F(TokenizerFiles, StrippingAddedTokensAreUnsupported) {
  write_changed("\"lstrip\": false", "\"lstrip\": true");
  EXPECT_EQ(error_of_load().code, ErrorCode::unsupported);
}

TEST_F(TokenizerFiles, OtherDecodersAreUnsupported) {
  std::string json = tokenizer_json();
  const std::size_t decoder = json.find("\"decoder\"");
  const std::size_t begin = json.find('{', decoder);
  json.replace(begin, json.find('}', begin) - begin + 1, R"({"type": "ByteFallback"})");
  directory_.write("tokenizer.json", json);
  const Error error = error_of_load();
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_THAT(error.message, HasSubstr("ByteLevel"));
}

}  // namespace
}  // namespace sluice
