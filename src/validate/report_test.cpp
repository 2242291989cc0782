#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <string>

#include "validate/check_list.h"
#include "validate/report_formats.h"
#include "validate/svg_plot.h"

namespace sluice::validate {
namespace {

using testing::HasSubstr;
using testing::Not;

Check failed_check() {
  Check check{.id = "cuts",
              .title = "prompts in pieces",
              .proves = "It <proves> & more.",
              .summary = "1 < 2"};
  check.add_finding("tensor \"a&b\" <script>alert('x')</script>");
  check.table = Table{.columns = {"a", "größe"}, .rows = {{"<td>", "2"}}};
  return check;
}

Report small_report() {
  return {.version = "1.2.3",
          .subject = "<model>",
          .begun = "2026-01-31 12:00:00",
          .machine = {{"CPU", "a & b"}},
          .model = {},
          .checks = {failed_check()},
          .plots = {},
          .bars = {}};
}

TEST(ReportTest, SkippedIsNoFailureAndAFindingIsOne) {
  Report report = small_report();
  report.checks[0] = Check{.id = "a", .title = "", .proves = "", .summary = ""};
  report.checks[0].skip("no file");
  EXPECT_TRUE(report.pass());
  EXPECT_EQ(report.checks[0].summary, "no file");
  report.checks[0].add_finding("wrong");
  report.checks[0].skip("later");
  EXPECT_FALSE(report.pass());
}

TEST(ReportTest, OnlySomeFindingsAreKeptAndAllAreCounted) {
  Check check{.id = "a", .title = "t", .proves = "", .summary = "s"};
  for (int i = 0; i < 40; ++i) {
    check.add_finding("finding " + std::to_string(i));
  }
  EXPECT_EQ(check.findings.size(), kFindingsMax);
  EXPECT_EQ(check.finding_count, 40);
  EXPECT_THAT(to_text(check), HasSubstr("and 28 more"));
}

TEST(ReportTest, TextNamesCheckAndFindingAndAlignsColumns) {
  const std::string text = to_text(failed_check());
  EXPECT_THAT(text, HasSubstr("FAIL     cuts"));
  EXPECT_THAT(text, HasSubstr("    WRONG: tensor \"a&b\""));
  EXPECT_THAT(text, HasSubstr("    a     größe\n    <td>  2\n"));
}

TEST(ReportTest, JsonHoldsWhatTheCheckFound) {
  const boost::json::value value = boost::json::parse(to_json(small_report()));
  EXPECT_FALSE(value.at("pass").as_bool());
  const boost::json::value& check = value.at("checks").at(0);
  EXPECT_EQ(check.at("outcome"), "fail");
  EXPECT_EQ(check.at("finding_count"), 1);
  EXPECT_EQ(check.at("table").at("rows").at(0).at(1), "2");
}

TEST(ReportTest, JsonHasNoNumbersThatAreNone) {
  Report report = small_report();
  report.plots = {{.title = "p", .y_unit = "u", .series = {{.name = "s", .points = {{1, NAN}}}}}};
  const boost::json::value value = boost::json::parse(to_json(report));
  EXPECT_TRUE(value.at("plots").at(0).at("series").at(0).at("points").at(0).at(1).is_null());
}

TEST(ReportTest, HtmlEscapesEverything) {
  const std::string html = to_html(small_report());
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(&#39;x&#39;)"));
  EXPECT_THAT(html, HasSubstr("&lt;model&gt;"));
  EXPECT_THAT(html, HasSubstr("a &amp; b"));
  EXPECT_THAT(html, Not(HasSubstr("<td><td>")));
}

TEST(EscapeTest, ControlCharactersAreDropped) {
  EXPECT_EQ(escape_html(std::string("a\0\x1b[31m\"b", 9)), "a[31m&quot;b");
}

TEST(SvgPlotTest, AllPointsAreDrawn) {
  const std::string svg = svg_plot({.title = "rate",
                                    .y_unit = "tokens/s",
                                    .series = {{.name = "a", .points = {{512, 10}, {4096, 20}}},
                                               {.name = "b", .points = {{512, 5}}}}});
  EXPECT_THAT(svg, HasSubstr("<polyline class=\"line s0\""));
  EXPECT_THAT(svg, Not(HasSubstr("line s1")));  // one point makes no line
  EXPECT_THAT(svg, HasSubstr("circle class=\"c1\""));
  EXPECT_THAT(svg, HasSubstr("class=\"legend\""));
  EXPECT_THAT(svg, HasSubstr(">4K<"));
}

TEST(SvgPlotTest, NoPointsAndImpossiblePointsSaySo) {
  for (const Series& series :
       {Series{.name = "a", .points = {}},
        Series{.name = "a", .points = {{0, 1}, {NAN, 1}, {1, INFINITY}, {1, -1}}}}) {
    const std::string svg = svg_plot({.title = "x", .y_unit = "u", .series = {series}});
    EXPECT_THAT(svg, HasSubstr("no measurements"));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
  }
}

TEST(SvgPlotTest, OnePointZeroAndHugeNumbersStayInsideTheDrawing) {
  for (const Point point : {Point{1000, 0}, Point{1, 1e300}, Point{1e18, 1e-300}}) {
    const std::string svg =
        svg_plot({.title = "x", .y_unit = "u", .series = {{.name = "a", .points = {point}}}});
    EXPECT_THAT(svg, HasSubstr("<circle"));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
    EXPECT_LT(svg.size(), 4000U);  // no endless grid
  }
}

TEST(SvgBarTest, PartsShareTheWidth) {
  const std::string svg = svg_bar({.title = "memory", .parts = {{"weights", 3072}, {"KV", 1024}}});
  EXPECT_THAT(svg, HasSubstr("width=\"750.00\""));
  EXPECT_THAT(svg, HasSubstr("x=\"750.00\""));
  EXPECT_THAT(svg, HasSubstr("4.00 KiB"));
  EXPECT_THAT(svg_bar({.title = "memory", .parts = {}}), HasSubstr("no measurements"));
}

TEST(ShortNumberTest, ThreeDigitsThatCount) {
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(1234), "1234");
  EXPECT_EQ(short_number(12000), "12k");
  EXPECT_EQ(short_number(2.5e6), "2.5M");
  EXPECT_EQ(short_number(INFINITY), "–");
}

TEST(ChooseChecksTest, OnlySkipAndUnknown) {
  EXPECT_EQ(choose_checks({}, {})->size(), all_checks().size());
  EXPECT_THAT(*choose_checks({"cache", "cuts"}, {}), testing::ElementsAre("cuts", "cache"));
  EXPECT_EQ(choose_checks({}, {"isa"})->size(), all_checks().size() - 1);
  EXPECT_THAT(choose_checks({"nothing"}, {}).error().message, HasSubstr("nothing"));
  EXPECT_FALSE(choose_checks({"isa"}, {"isa"}));
}

TEST(CheckRunTest, AnErrorOfACheckIsAFinding) {
  const SteadyClock clock;
  Report report = small_report();
  report.checks.clear();
  std::string heard;
  CheckRun run(report, {"cuts"}, clock, [&](const Check& check) { heard += check.id; });
  run.run("isa", [](Check&) -> Result<void> { return fail(ErrorCode::io, "not chosen"); });
  run.run("cuts", [](Check&) -> Result<void> { return fail(ErrorCode::io, "no memory"); });
  ASSERT_EQ(report.checks.size(), 1U);
  EXPECT_EQ(heard, "cuts");
  EXPECT_FALSE(report.pass());
  EXPECT_THAT(report.checks[0].findings, testing::ElementsAre("no memory"));
}

}  // namespace
}  // namespace sluice::validate
