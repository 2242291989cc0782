#include "api/fields/sampling_defaults.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(SamplingDefaults, EachModeHasItsOwn) {
  const auto defaults = parse_sampling_defaults(
      R"({"thinking":{"temperature":1,"top_k":20},"direct":{"temperature":0.7,"presence_penalty":1.5}})");
  ASSERT_TRUE(defaults) << defaults.error().message;
  EXPECT_EQ(defaults->thinking.temperature, 1.0F);
  EXPECT_EQ(defaults->thinking.top_k, 20);
  EXPECT_FALSE(defaults->thinking.presence_penalty);
  EXPECT_EQ(defaults->direct.temperature, 0.7F);
  EXPECT_EQ(defaults->direct.presence_penalty, 1.5F);
  EXPECT_FALSE(parse_sampling_defaults("{}")->direct.temperature);
}

TEST(SamplingDefaults, MistakesAreNamed) {
  const auto param = [](const char* text) {
    const auto defaults = parse_sampling_defaults(text);
    return defaults ? std::string("none") : defaults.error().param;
  };
  EXPECT_EQ(param(R"({"thinking":{"temperature":3}})"), "thinking.temperature");
  EXPECT_EQ(param(R"({"thinking":{"temprature":1}})"), "thinking.temprature");
  EXPECT_EQ(param(R"({"other":{}})"), "other");
  EXPECT_EQ(param(R"({"direct":{"seed":1}})"), "direct.seed");
  EXPECT_EQ(param("{"), "");
}

TEST(SamplingDefaults, RequestsComeFirst) {
  SamplingFields fields;
  fields.temperature = 0.0F;
  SamplingFields defaults;
  defaults.temperature = 1.0F;
  defaults.top_p = 0.5F;
  complete_sampling(fields, defaults);
  EXPECT_EQ(fields.temperature, 0.0F);
  EXPECT_EQ(fields.top_p, 0.5F);
  EXPECT_FALSE(fields.top_k);
}

}  // namespace
}  // namespace sluice
