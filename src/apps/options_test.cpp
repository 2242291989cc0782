#include "apps/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace sluice::apps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseInteger, TakesPlainDecimalInsideTheLimits) {
  EXPECT_EQ(parse_integer("0", {0, 9}, "x").value(), 0);
  EXPECT_EQ(parse_integer("9", {0, 9}, "x").value(), 9);
  EXPECT_EQ(parse_integer("-3", {-3, 9}, "x").value(), -3);
}

TEST(ParseInteger, RefusesWhatOnlyLooksLikeANumber) {
  for (const char* text : {"", "-", "+1", " 1", "1 ", "01", "0x10", "1.0", "1e3", "1a", "10", "-1",
                           "9223372036854775808", "99999999999999999999"}) {
    const auto result = parse_integer(text, {0, 9}, "--count");
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(result.error().message, HasSubstr("--count"));
    EXPECT_THAT(result.error().message, HasSubstr(std::string("'") + text + "'"));
    EXPECT_THAT(result.error().message, HasSubstr("from 0 to 9"));
  }
}

TEST(ParseNumber, TakesFiniteNumbersInsideTheLimits) {
  EXPECT_EQ(parse_number("0.5", {0.0, 2.0}, "x").value(), 0.5);
  EXPECT_EQ(parse_number("2", {0.0, 2.0}, "x").value(), 2.0);
  EXPECT_EQ(parse_number("1e-3", {0.0, 2.0}, "x").value(), 1e-3);
  for (const char* text : {"", "nan", "inf", "2.1", "-0.1", "1x", "0.5 ", "1e999", "0,5"}) {
    EXPECT_FALSE(parse_number(text, {0.0, 2.0}, "x")) << text;
  }
}

TEST(ParseTokenIds, TakesCommasAndLines) {
  EXPECT_THAT(parse_token_ids("1,2,3", "x").value(), ElementsAre(1, 2, 3));
  EXPECT_THAT(parse_token_ids(" 1, 2\n3\r\n", "x").value(), ElementsAre(1, 2, 3));
  EXPECT_THAT(parse_token_ids("7", "x").value(), ElementsAre(7));
  EXPECT_THAT(parse_token_ids("2147483647", "x").value(), ElementsAre(2147483647));
}

TEST(ParseTokenIds, NamesTheBadId) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& bad : std::vector<Case>{{"", "no token ids"},
                                           {" \n", "no token ids"},
                                           {"1,", "ends with a comma"},
                                           {",1", "empty id at index 0"},
                                           {"1,,2", "empty id at index 1"},
                                           {"1,-2", "id at index 1: '-2'"},
                                           {"1,2,x", "id at index 2: 'x'"},
                                           {"1;2", "id at index 0: '1;2'"},
                                           {"1.5", "id at index 0: '1.5'"},
                                           {"2147483648", "id at index 0: '2147483648'"}}) {
    const auto result = parse_token_ids(bad.text, "--token-ids");
    ASSERT_FALSE(result) << bad.text;
    EXPECT_THAT(result.error().message, HasSubstr("--token-ids"));
    EXPECT_THAT(result.error().message, HasSubstr(bad.message));
  }
}

TEST(CheckTokenIds, NamesIndexIdAndVocabulary) {
  EXPECT_TRUE(check_token_ids({0, 99}, 100, "x"));
  const auto result = check_token_ids({0, 100}, 100, "--token-ids");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "--token-ids: id 100 at index 1 is outside the vocabulary [0, 100)");
}

TEST(RuntimeOptions, UsageErrorsNameTheOption) {
  CLI::App command;
  RuntimeOptions options;
  add_runtime_options(command, options, true);
  command.parse("--threads 3 some/model", false);
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.model, "some/model");
  for (const char* line :
       {"--threads 0x2 m", "--threads -1 m", "--threads 5000 m", "--threads m"}) {
    CLI::App again;
    RuntimeOptions ignored;
    add_runtime_options(again, ignored, true);
    try {
      again.parse(line, false);
      FAIL() << line;
    } catch (const CLI::ParseError& error) {
      EXPECT_THAT(error.what(), HasSubstr("--threads")) << line;
    }
  }
}

}  // namespace
}  // namespace sluice::apps
