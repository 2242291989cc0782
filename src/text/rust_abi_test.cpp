// The C ABI itself: what C++ callers never do must be an error there, not a crash.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/rust_call.h"
#include "text/testdata/temporary_directory.h"

namespace sluice {
namespace {

using testing::HasSubstr;

std::string read(std::string_view name) {
  std::ifstream file(test_tokenizer_directory() / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class RustAbi : public testing::Test {
 protected:
  void SetUp() override {
    const std::string json = read("tokenizer.json");
    sluice_tokenizer_source source{};
    source.struct_size = sizeof(source);
    source.tokenizer_json = rust_data(json);
    source.tokenizer_json_len = json.size();
    ASSERT_TRUE(rust_call("", sluice_tokenizer_new, &source, &tokenizer_));
  }
  void TearDown() override { sluice_tokenizer_free(tokenizer_); }

  template <typename Function, typename... Args>
  static std::string message(Function function, Args... args) {
    const Result<void> result = rust_call("", function, args...);
    EXPECT_FALSE(result);
    return result ? "" : result.error().message;
  }

  sluice_tokenizer* tokenizer_ = nullptr;
  sluice_ids ids_{};
  sluice_bytes bytes_{};
  sluice_ranges ranges_{};
  sluice_grammar* grammar_ = nullptr;
  sluice_chat_template* chat_template_ = nullptr;
};

TEST_F(RustAbi, NullsAreErrors) {
  sluice_encode_input input{};
  input.struct_size = sizeof(input);
  const sluice_tokenizer* none = nullptr;
  sluice_tokenizer* made = nullptr;
  EXPECT_THAT(message(sluice_tokenizer_new, static_cast<sluice_tokenizer_source*>(nullptr), &made),
              HasSubstr("source: null"));
  EXPECT_THAT(message(sluice_tokenizer_encode, none, &input, &ids_), HasSubstr("tokenizer: null"));
  EXPECT_THAT(message(sluice_tokenizer_encode, tokenizer_,
                      static_cast<sluice_encode_input*>(nullptr), &ids_),
              HasSubstr("input: null"));
  EXPECT_THAT(
      message(sluice_tokenizer_encode, tokenizer_, &input, static_cast<sluice_ids*>(nullptr)),
      HasSubstr("ids: null"));
  input.text_len = 3;
  EXPECT_THAT(message(sluice_tokenizer_encode, tokenizer_, &input, &ids_), HasSubstr("text: null"));
  input.text_len = 0;
  input.literal_ranges_len = 3;
  EXPECT_THAT(message(sluice_tokenizer_encode, tokenizer_, &input, &ids_),
              HasSubstr("literal_ranges: null"));
  EXPECT_THAT(message(sluice_tokenizer_decode, tokenizer_, static_cast<std::int32_t*>(nullptr),
                      std::size_t{2}, false, &bytes_),
              HasSubstr("ids: null"));
  EXPECT_THAT(message(sluice_chat_template_new, static_cast<std::uint8_t*>(nullptr), std::size_t{1},
                      &chat_template_),
              HasSubstr("chat template: null"));
  EXPECT_THAT(message(sluice_chat_template_render, chat_template_, tokenizer_,
                      static_cast<std::uint8_t*>(nullptr), std::size_t{0}, &bytes_, &ranges_),
              HasSubstr("chat_template: null"));
  EXPECT_THAT(message(sluice_grammar_accept, grammar_, 1), HasSubstr("grammar: null"));
  EXPECT_THAT(message(sluice_grammar_allowed_mask, grammar_, static_cast<std::uint32_t*>(nullptr),
                      std::size_t{0}),
              HasSubstr("grammar: null"));
  bool finished = false;
  EXPECT_THAT(message(sluice_grammar_is_finished, grammar_, &finished), HasSubstr("grammar: null"));
}

TEST_F(RustAbi, NullsHaveHarmlessAnswers) {
  EXPECT_EQ(sluice_tokenizer_vocab_size(nullptr), 0);
  EXPECT_EQ(sluice_tokenizer_eos_token_id(nullptr), -1);
  EXPECT_EQ(sluice_tokenizer_token_id(nullptr, nullptr, 0), -1);
  EXPECT_EQ(sluice_tokenizer_token_id(tokenizer_, nullptr, 7), -1);
  EXPECT_FALSE(sluice_tokenizer_is_special(nullptr, 0));
  EXPECT_EQ(sluice_tokenizer_token_bytes(nullptr, 0, nullptr), 0U);
  EXPECT_EQ(sluice_text_error_code(nullptr), SLUICE_TEXT_OK);
  EXPECT_EQ(sluice_text_error_message(nullptr, nullptr), 0U);
  sluice_text_error_free(nullptr);
  sluice_tokenizer_free(nullptr);
  sluice_chat_template_free(nullptr);
  sluice_grammar_free(nullptr);
  sluice_bytes_free({});
  sluice_ids_free({});
  sluice_ranges_free({});
}

TEST_F(RustAbi, ErrorObjectsAreOptional) {
  EXPECT_EQ(sluice_tokenizer_encode(nullptr, nullptr, nullptr, nullptr),
            SLUICE_TEXT_INVALID_ARGUMENT);
}

TEST_F(RustAbi, SuccessClearsTheErrorPointer) {
  auto* error = reinterpret_cast<sluice_text_error*>(0x1);
  sluice_encode_input input{};
  input.struct_size = sizeof(input);
  EXPECT_EQ(sluice_tokenizer_encode(tokenizer_, &input, &ids_, &error), SLUICE_TEXT_OK);
  EXPECT_EQ(error, nullptr);
  EXPECT_EQ(ids_.data, nullptr);
}

TEST_F(RustAbi, StructsOfOtherVersionsAreRefused) {
  sluice_encode_input input{};
  input.struct_size = sizeof(input) - 8;
  EXPECT_THAT(message(sluice_tokenizer_encode, tokenizer_, &input, &ids_),
              HasSubstr("struct_size"));
  sluice_grammar_source source{};
  EXPECT_THAT(message(sluice_grammar_new, tokenizer_, &source, &grammar_),
              HasSubstr("struct_size"));
  source.struct_size = sizeof(source);
  source.kind = 17;
  EXPECT_THAT(message(sluice_grammar_new, tokenizer_, &source, &grammar_), HasSubstr("kind 17"));
}

TEST_F(RustAbi, SizesAreLimited) {
  // The limit is checked before the bytes are looked at.
  const std::string text = "x";
  sluice_encode_input input{};
  input.struct_size = sizeof(input);
  input.text = rust_data(text);
  input.text_len = SLUICE_ENCODE_BYTES_MAX + std::size_t{1};
  const Result<void> encoded = rust_call("", sluice_tokenizer_encode, tokenizer_, &input, &ids_);
  ASSERT_FALSE(encoded);
  EXPECT_EQ(encoded.error().code, ErrorCode::resource_exhausted);
  const Result<void> compiled =
      rust_call("", sluice_chat_template_new, rust_data(text),
                SLUICE_TEMPLATE_BYTES_MAX + std::size_t{1}, &chat_template_);
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().code, ErrorCode::resource_exhausted);
}

TEST_F(RustAbi, RandomBytesNeverCrash) {
  std::uint32_t state = 1;
  const auto next = [&state] { return (state = state * 1664525U + 1013904223U) >> 8; };
  const std::string alphabet = "{}%#-'\"|.[]()<>_ \n\\ax09,:~+*=\xC3\xA9\xFF";
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    const std::size_t size = next() % 60;
    for (std::size_t i = 0; i < size; ++i) {
      text += alphabet[next() % alphabet.size()];
    }
    chat_template_ = nullptr;
    const std::string source = (round % 2 != 0 ? "{{ " + text + " }}" : text);
    if (rust_call("", sluice_chat_template_new, rust_data(source), source.size(),
                  &chat_template_)) {
      const std::string variables = R"({"a": "<think>", "x": [1, {"a": 2.5}]})";
      if (rust_call("", sluice_chat_template_render, chat_template_, tokenizer_,
                    rust_data(variables), variables.size(), &bytes_, &ranges_)) {
        sluice_bytes_free(bytes_);
        sluice_ranges_free(ranges_);
      }
      sluice_chat_template_free(chat_template_);
    }
    sluice_grammar_source grammar{};
    grammar.struct_size = sizeof(grammar);
    grammar.kind = round % 3;
    grammar.text = rust_data(text);
    grammar.text_len = text.size();
    const std::int32_t stop = 602;
    grammar.stop_ids = &stop;
    grammar.stop_ids_len = 1;
    grammar_ = nullptr;
    if (round % 4 == 0 && rust_call("", sluice_grammar_new, tokenizer_, &grammar, &grammar_)) {
      sluice_grammar_free(grammar_);
    }
  }
}

}  // namespace
}  // namespace sluice
