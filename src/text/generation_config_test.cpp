#include "text/generation_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/testdata/temporary_directory.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class GenerationConfigTest : public testing::Test {
 protected:
  GenerationConfig load(const Tokenizer* tokenizer = nullptr) const {
    Result<GenerationConfig> config = load_generation_config(directory_.path(), tokenizer);
    EXPECT_TRUE(config) << config.error().message;
    return config ? *config : GenerationConfig{};
  }

  TemporaryDirectory directory_;
};

TEST_F(GenerationConfigTest, ReadsAChatRelease) {
  directory_.write("generation_config.json", R"({"bos_token_id": 248044, "do_sample": true,
      "eos_token_id": [248046, 248044], "pad_token_id": 248044, "temperature": 1.0, "top_k": 20,
      "top_p": 0.95, "transformers_version": "4.57.0"})");
  const GenerationConfig config = load();
  EXPECT_THAT(config.eos_token_ids, ElementsAre(248044, 248046));
  EXPECT_TRUE(config.do_sample);
  EXPECT_EQ(config.temperature, 1.0F);
  EXPECT_EQ(config.top_k, 20);
  EXPECT_EQ(config.top_p, 0.95F);
  EXPECT_EQ(config.min_p, std::nullopt);
  EXPECT_EQ(config.presence_penalty, std::nullopt);
  EXPECT_EQ(config.repetition_penalty, std::nullopt);
}

TEST_F(GenerationConfigTest, JoinsTheTokenizersEos) {
  const Result<Tokenizer> tokenizer = Tokenizer::load(test_tokenizer_directory());
  ASSERT_TRUE(tokenizer);
  directory_.write("generation_config.json", R"({"eos_token_id": 600, "min_p": 0, "top_k": 0})");
  EXPECT_THAT(load(&*tokenizer).eos_token_ids, ElementsAre(600, 602));
  directory_.write("generation_config.json", R"({"eos_token_id": [602, 600, 602]})");
  EXPECT_THAT(load(&*tokenizer).eos_token_ids, ElementsAre(600, 602));
}

TEST_F(GenerationConfigTest, FallsBackToTheModelConfig) {
  EXPECT_THAT(load().eos_token_ids, ElementsAre());
  directory_.write("config.json", R"({"text_config": {"eos_token_id": 7}})");
  EXPECT_THAT(load().eos_token_ids, ElementsAre(7));
  directory_.write("config.json",
                   R"({"eos_token_id": [9, 8], "text_config": {"eos_token_id": 7}})");
  EXPECT_THAT(load().eos_token_ids, ElementsAre(8, 9));
  directory_.write("generation_config.json", R"({"eos_token_id": null, "temperature": null})");
  EXPECT_THAT(load().eos_token_ids, ElementsAre(8, 9));
  EXPECT_EQ(load().temperature, std::nullopt);
  directory_.write("generation_config.json", R"({"eos_token_id": 3})");
  EXPECT_THAT(load().eos_token_ids, ElementsAre(3));
}

TEST_F(GenerationConfigTest, MalformedFilesAreNamed) {
  struct Case {
    std::string_view json;
    std::string_view says;
  };
  for (const Case& bad : {
           Case{"", "not JSON"},
           Case{"{\"top_k\": 1", "not JSON"},
           Case{"[]", "want a JSON object"},
           Case{R"({"eos_token_id": "x"})", "eos_token_id"},
           Case{R"({"eos_token_id": [1, -2]})", "eos_token_id"},
           Case{R"({"eos_token_id": 4294967296})", "eos_token_id"},
           Case{R"({"do_sample": 1})", "do_sample"},
           Case{R"({"temperature": -0.5})", "temperature"},
           Case{R"({"temperature": "1"})", "temperature"},
           Case{R"({"temperature": 1e300})", "temperature"},
           Case{R"({"temperature": 2.5})", "temperature"},
           Case{R"({"presence_penalty": -2.5})", "presence_penalty"},
           Case{R"({"repetition_penalty": 2.5})", "repetition_penalty"},
           Case{R"({"top_k": 1.5})", "top_k"},
           Case{R"({"top_k": -1})", "top_k"},
           Case{R"({"top_p": 1.5})", "top_p"},
           Case{R"({"min_p": -1})", "min_p"},
           Case{R"({"presence_penalty": []})", "presence_penalty"},
           Case{R"({"repetition_penalty": 0})", "repetition_penalty"},
       }) {
    directory_.write("generation_config.json", bad.json);
    const auto config = load_generation_config(directory_.path(), nullptr);
    ASSERT_FALSE(config) << bad.json;
    EXPECT_EQ(config.error().code, ErrorCode::corrupt_data) << bad.json;
    EXPECT_THAT(config.error().message, HasSubstr(std::string(bad.says)));
    EXPECT_THAT(config.error().message, HasSubstr("generation_config.json"));
  }
}

}  // namespace
}  // namespace sluice
