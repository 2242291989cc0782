#include "apps/sampling_options.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>

namespace sluice::apps {
namespace {

GenerationConfig chat_release() {
  GenerationConfig config;
  config.do_sample = true;
  config.temperature = 0.6F;
  config.top_k = 20;
  config.top_p = 0.95F;
  return config;
}

SamplingOptions parse(const std::string& line) {
  CLI::App command;
  SamplingOptions options;
  add_sampling_options(command, options);
  command.parse(line, false);
  return options;
}

TEST(SamplingOptions, AreGreedyByDefaultWhateverTheModelSays) {
  const SamplingParams params = resolve_sampling(parse(""), chat_release()).value();
  EXPECT_EQ(params.temperature, 0.0F);
  EXPECT_EQ(params.top_k, 0);
  EXPECT_EQ(params.top_p, 1.0F);
  EXPECT_EQ(params.repetition_penalty, 1.0F);
}

TEST(SamplingOptions, ModelDefaultsFillWhatWasNotGiven) {
  const SamplingParams params =
      resolve_sampling(parse("--sampling-defaults model --top-k 5 --seed 7"), chat_release())
          .value();
  EXPECT_EQ(params.temperature, 0.6F);
  EXPECT_EQ(params.top_k, 5);
  EXPECT_EQ(params.top_p, 0.95F);
  EXPECT_EQ(params.seed, 7U);
}

TEST(SamplingOptions, AModelThatDoesNotSampleStaysGreedy) {
  GenerationConfig config = chat_release();
  config.do_sample = false;
  EXPECT_EQ(resolve_sampling(parse("--sampling-defaults model"), config).value().temperature, 0.0F);
}

TEST(SamplingOptions, AModelThatSamplesWithoutATemperatureUsesOne) {
  GenerationConfig config;
  config.do_sample = true;
  EXPECT_EQ(resolve_sampling(parse("--sampling-defaults model"), config).value().temperature, 1.0F);
}

TEST(SamplingOptions, AFilterThatWouldDoNothingIsAnError) {
  EXPECT_FALSE(resolve_sampling(parse("--top-p 0.9"), chat_release()));
  EXPECT_FALSE(resolve_sampling(parse("--min-p 0.1"), chat_release()));
  EXPECT_TRUE(resolve_sampling(parse("--top-p 0.9 --temperature 0"), chat_release()));
  EXPECT_TRUE(resolve_sampling(parse("--top-p 0.9 --temperature 1"), chat_release()));
}

TEST(SamplingOptions, SeedsDifferWhenNoneIsGiven) {
  const auto first = resolve_sampling(parse(""), {}).value().seed;
  const auto second = resolve_sampling(parse(""), {}).value().seed;
  EXPECT_NE(first, second);  // fails once in 2^64 runs
}

TEST(SamplingOptions, RangesAreUsageErrors) {
  for (const char* line :
       {"--temperature -0.1", "--temperature 2.1", "--temperature nan", "--top-k -1", "--top-k 1.5",
        "--top-p 1.01", "--min-p -1", "--presence-penalty 3", "--frequency-penalty -2.5",
        "--repetition-penalty 0", "--seed -1", "--seed 0x1", "--sampling-defaults wild"}) {
    EXPECT_THROW(parse(line), CLI::ParseError) << line;
  }
}

}  // namespace
}  // namespace sluice::apps
