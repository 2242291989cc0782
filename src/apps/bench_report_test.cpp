#include "apps/bench_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <optional>
#include <string>

namespace sluice::apps {
namespace {

namespace json = boost::json;

using ::testing::HasSubstr;
using ::testing::Not;

constexpr ops::Ceiling kCeiling{
    .flop_per_s = 1e12, .int8_op_per_s = std::nullopt, .read_byte_per_s = 1e10};

TEST(BenchRate, ComparesTheMiddleRunWithTheRoofline) {
  const BenchRate rate = bench_rate({.seconds = {4.0, 1.0, 2.0}, .ceiling = kCeiling}, 10,
                                    {.flops = 5e11, .bytes = 1e9});
  EXPECT_EQ(rate.runs, 3U);
  EXPECT_DOUBLE_EQ(rate.tok_per_s, 5.0);
  EXPECT_DOUBLE_EQ(rate.tok_per_s_best, 10.0);
  EXPECT_DOUBLE_EQ(rate.ceiling_tok_per_s, 20.0);  // 0.5 s of computing, 0.1 s of reading
  EXPECT_DOUBLE_EQ(rate.percent_of_ceiling(), 25.0);
  EXPECT_TRUE(rate.compute_bound);
}

TEST(BenchRate, ReadingBoundsWhatComputesLittle) {
  const BenchRate rate =
      bench_rate({.seconds = {0.5}, .ceiling = kCeiling}, 4, {.flops = 1e9, .bytes = 1e9});
  EXPECT_DOUBLE_EQ(rate.ceiling_tok_per_s, 40.0);
  EXPECT_FALSE(rate.compute_bound);
}

BenchReport small_report() {
  const BenchRate rate{.runs = 2,
                       .tok_per_s = 50.0,
                       .tok_per_s_best = 60.0,
                       .ceiling_tok_per_s = 100.0,
                       .compute_bound = true};
  BenchReport report;
  report.version = "1.2.3";
  report.kernels = "avx512";
  report.threads = 2;
  report.model = "some/model";
  report.layers = 4;
  report.product_loop = "avx512 fma";
  report.ceiling_best = kCeiling;
  report.ceiling_median = kCeiling;
  report.prefill = {{.tokens = 512, .rate = rate}};
  report.decode = {{.context = 4096, .batch = 16, .rate = rate}};
  report.skipped = {{.what = "--decode 32768 with --batch 16", .reason = "takes too much"}};
  return report;
}

TEST(BenchReport, TextNamesEveryFigure) {
  const std::string text = to_text(small_report());
  for (const char* part : {"sluice 1.2.3", "kernels avx512, 2 threads", "some/model, 4 layers",
                           "avx512 fma 1.000 TFLOP/s, read 10.0 GB/s", "50.0 %  compute",
                           "skipped: --decode 32768 with --batch 16: takes too much\n"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("int8")));
}

TEST(BenchReport, JsonHasTheAgreedMembers) {
  const json::object object = json::parse(to_json(small_report())).as_object();
  const json::object& prefill = object.at("prefill").as_array().at(0).as_object();
  EXPECT_EQ(prefill.at("tokens").to_number<int>(), 512);
  EXPECT_EQ(prefill.at("tok_per_s").to_number<double>(), 50.0);
  const json::object& decode = object.at("decode").as_array().at(0).as_object();
  EXPECT_EQ(decode.at("context").to_number<int>(), 4096);
  EXPECT_EQ(decode.at("batch").to_number<int>(), 16);
  EXPECT_EQ(decode.at("percent_of_ceiling").to_number<double>(), 50.0);
  EXPECT_EQ(decode.at("bound").as_string(), "compute");
  EXPECT_EQ(object.at("ceiling").at("flop_per_s").to_number<double>(), 1e12);
  EXPECT_FALSE(object.at("ceiling").as_object().contains("int8_op_per_s"));
  EXPECT_TRUE(object.contains("memory"));
  EXPECT_EQ(object.at("skipped").as_array().size(), 1U);
}

}  // namespace
}  // namespace sluice::apps
