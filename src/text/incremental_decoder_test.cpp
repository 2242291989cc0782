#include "text/incremental_decoder.h"

#include <random>

#include <gtest/gtest.h>

#include "text/testdata/temporary_directory.h"

namespace sluice {
namespace {

class IncrementalDecoderTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<Tokenizer> tokenizer = Tokenizer::load(test_tokenizer_directory());
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    tokenizer_ = std::move(*tokenizer);
    for (std::int32_t id = 0; id < 256; ++id) {
      byte_ids_[static_cast<unsigned char>(tokenizer_->token_bytes(id)[0])] = id;
    }
  }

  // One token per byte.
  std::vector<std::int32_t> bytes_as_ids(std::string_view bytes) const {
    std::vector<std::int32_t> ids;
    for (const char byte : bytes) {
      ids.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
    }
    return ids;
  }

  std::string stream(const std::vector<std::int32_t>& ids, bool skip = true) const {
    IncrementalDecoder decoder(*tokenizer_, skip);
    std::string text;
    for (const std::int32_t id : ids) {
      text += decoder.append(id);
    }
    return text + decoder.finish();
  }

  std::optional<Tokenizer> tokenizer_;
  std::array<std::int32_t, 256> byte_ids_{};
};

TEST_F(IncrementalDecoderTest, NeverSplitsACharacter) {
  IncrementalDecoder decoder(*tokenizer_);
  const std::vector<std::int32_t> ids = bytes_as_ids("a\xC3\xA9\xE6\xB0\xB4\xF0\x9F\x98\x80");
  std::vector<std::string> pieces;
  for (const std::int32_t id : ids) {
    pieces.push_back(decoder.append(id));
  }
  EXPECT_EQ(pieces, (std::vector<std::string>{"a", "", "\xC3\xA9", "", "", "\xE6\xB0\xB4", "", "",
                                              "", "\xF0\x9F\x98\x80"}));
  EXPECT_EQ(decoder.finish(), "");
}

TEST_F(IncrementalDecoderTest, InvalidBytesAreReplacedAtOnce) {
  IncrementalDecoder decoder(*tokenizer_);
  const std::vector<std::int32_t> ids = bytes_as_ids(
      "\xE6\xB0"
      "a\xFF");
  EXPECT_EQ(decoder.append(ids[0]), "");
  EXPECT_EQ(decoder.append(ids[1]), "");
  EXPECT_EQ(decoder.append(ids[2]),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(decoder.append(ids[3]), "\xEF\xBF\xBD");
  EXPECT_EQ(decoder.finish(), "");
}

TEST_F(IncrementalDecoderTest, AnUnfinishedCharacterEndsAsReplacement) {
  IncrementalDecoder decoder(*tokenizer_);
  for (const std::int32_t id : bytes_as_ids("\xF0\x9F\x98")) {
    EXPECT_EQ(decoder.append(id), "");
  }
  EXPECT_EQ(decoder.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(decoder.finish(), "");
}

TEST_F(IncrementalDecoderTest, SpecialTokensAreSkippedInsideACharacter) {
  std::vector<std::int32_t> ids = bytes_as_ids("\xC3\xA9");
  ids.insert(ids.begin() + 1, *tokenizer_->token_id("<|im_end|>"));
  EXPECT_EQ(stream(ids), "\xC3\xA9");
  EXPECT_EQ(stream(ids, false), "\xEF\xBF\xBD<|im_end|>\xEF\xBF\xBD");
  EXPECT_EQ(stream({*tokenizer_->token_id("<think>")}), "<think>");
}

TEST_F(IncrementalDecoderTest, EqualsDecodeOfTheWholeForAnyBytes) {
  std::mt19937 random(7);
  // Leads and continuations of every kind, so that nearly valid sequences are common.
  const std::string alphabet =
      "a\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xED\xEE\xEF\xF0\xF1\xF4\xF5\xFF";
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(1 + random() % 9, '\0');
    for (char& byte : bytes) {
      byte = alphabet[random() % alphabet.size()];
    }
    const std::vector<std::int32_t> ids = bytes_as_ids(bytes);
    ASSERT_EQ(stream(ids), *tokenizer_->decode(ids, true)) << testing::PrintToString(bytes);
  }
}

TEST_F(IncrementalDecoderTest, EqualsDecodeOfTheWholeForAnyTokens) {
  std::mt19937 random(8);
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::int32_t> ids(1 + random() % 12);
    for (std::int32_t& id : ids) {
      id = static_cast<std::int32_t>(random() % 633);
    }
    const bool skip = round % 2 == 0;
    ASSERT_EQ(stream(ids, skip), *tokenizer_->decode(ids, skip));
  }
}

TEST_F(IncrementalDecoderTest, UnknownIdsAddNothing) {
  IncrementalDecoder decoder(*tokenizer_);
  EXPECT_EQ(decoder.append(-1), "");
  EXPECT_EQ(decoder.append(100000), "");
  EXPECT_EQ(decoder.finish(), "");
}

}  // namespace
}  // namespace sluice
