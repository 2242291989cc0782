#include <fmt/format.h>

#include <string>
#include <string_view>

#include "validate/report_formats.h"
#include "validate/svg_plot.h"

namespace sluice::validate {
namespace {

// Colours are named once per scheme; everything else refers to them.
constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --paper: #fbfaf7; --card: #ffffff; --ink: #23262b; --soft: #686e78;
  --line: #e4e2db; --pass: #22724a; --fail: #b3261e; --skip: #8a6d1b; --pass-bg: #e5f2ea;
  --fail-bg: #fbe7e5; --skip-bg: #f6efdb; --c0: #2f6f9f; --c1: #c8702a; --c2: #4c8c5a; --c3: #8a5a9e;
  --c4: #b59a2d; --c5: #7d8590; }
@media (prefers-color-scheme: dark) { :root { --paper: #16181c; --card: #1e2126; --ink: #e4e6ea;
  --soft: #9aa1ac; --line: #32363e; --pass: #7fd1a3; --fail: #f2938c; --skip: #dcc078;
  --pass-bg: #1c3328; --fail-bg: #3d2120; --skip-bg: #35301d; --c0: #78b4e0; --c1: #e8a068;
  --c2: #8cc79a; --c3: #c39bd6; --c4: #dcc566; --c5: #a2a9b4; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, -apple-system,
  "Segoe UI", Roboto, "Noto Sans", sans-serif; -webkit-text-size-adjust: 100%; }
main { max-width: 62rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.75rem; font-weight: 600; letter-spacing: -.01em; margin: 0; }
h2 { font-size: 1.2rem; font-weight: 600; margin: 3rem 0 1rem; }
h3 { font-size: 1.05rem; font-weight: 600; margin: 0; } h3::first-letter { text-transform: uppercase; }
.top { display: flex; flex-wrap: wrap; gap: .75rem 1.25rem; align-items: center; }
.tag { display: inline-block; padding: .1rem .6rem; border-radius: 1rem; font-size: .82rem; font-weight: 600;
  white-space: nowrap; }
.top .tag { font-size: 1.05rem; padding: .25rem 1.1rem; }
.pass { color: var(--pass); background: var(--pass-bg); }
.fail { color: var(--fail); background: var(--fail-bg); }
.skipped { color: var(--skip); background: var(--skip-bg); }
.lead { color: var(--soft); margin: .5rem 0 0; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.5rem; margin: 0; font-size: .92rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 1rem;
  margin-top: 1.75rem; }
.card, section, figure { background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: 1.1rem 1.25rem; margin: 0; }
.card h3 { margin-bottom: .6rem; }
section { margin-top: 1rem; }
section header { display: flex; flex-wrap: wrap; gap: .4rem .9rem; align-items: baseline; }
section p { margin: .5rem 0 0; } .proves { color: var(--soft); font-size: .92rem; }
.findings { margin: .75rem 0 0; padding-left: 1.1rem; color: var(--fail); overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin-top: .9rem; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--soft); }
th, td { padding: .38rem .9rem .38rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; } a { color: inherit; }
.summary td:first-child { white-space: nowrap; } .scroll td, .scroll th { white-space: nowrap; }
.summary td:nth-child(3) { width: 100%; } .seconds { text-align: right; color: var(--soft); white-space: nowrap; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
.stack p { margin: .9rem 0 .4rem; color: var(--soft); font-size: .9rem; } figcaption { font-weight: 600; font-size: .95rem; margin-bottom: .5rem; }
svg { display: block; width: 100%; height: auto; } svg text { fill: var(--soft); font-size: 15px; }
svg .axis { font-size: 14px; } svg .grid { stroke: var(--line); stroke-width: 1; }
svg.bar { height: 1.6rem; border-radius: .3rem; } svg .line { fill: none; stroke-width: 2.25; stroke-linejoin: round; }
.none { color: var(--soft); } .legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.25rem;
  padding: 0; margin: .7rem 0 0; font-size: .88rem; color: var(--soft); }
.legend i { display: inline-block; width: .7rem; height: .7rem; border-radius: .15rem; margin-right: .45rem; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
@media (max-width: 36rem) { main { padding: 1.5rem 1rem 3rem; } dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .45rem; } .card, section, figure { padding: .9rem 1rem; } svg text { font-size: 17px; }
  svg .axis { font-size: 16px; } .summary td:nth-child(2) { display: none; }
  .summary th:nth-child(2) { display: none; } }
@media print { body { background: #fff; } section, figure { break-inside: avoid; } }
)css";

constexpr int kColours = 6;

std::string style() {
  std::string out = "<style>";
  out += kStyle;
  for (int i = 0; i < kColours; ++i) {
    out += fmt::format(
        ".c{0} {{ fill: var(--c{0}); }} .s{0} {{ stroke: var(--c{0}); }} "
        ".b{0} {{ background: var(--c{0}); }}\n",
        i);
  }
  return out + "</style>\n";
}

std::string_view class_of(Outcome outcome) {
  return outcome == Outcome::fail ? "fail" : to_string(outcome);
}

std::string tag(Outcome outcome) {
  return fmt::format("<span class=\"tag {}\">{}</span>", class_of(outcome),
                     outcome == Outcome::fail ? "fail" : to_string(outcome));
}

void append_facts(std::string& out, std::string_view title, const std::vector<Fact>& facts) {
  if (facts.empty()) {
    return;
  }
  out += fmt::format("<div class=\"card\"><h3>{}</h3><dl>\n", title);
  for (const Fact& fact : facts) {
    out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escape_html(fact.name), escape_html(fact.value));
  }
  out += "</dl></div>\n";
}

void append_header(std::string& out, const Report& report) {
  const bool pass = report.pass();
  out += fmt::format(
      "<div class=\"top\"><h1>Sluice validation</h1><span class=\"tag {}\">{}</span></div>\n"
      "<p class=\"lead\">{}</p>\n<p class=\"lead\">{} passed, {} failed, {} skipped · sluice {} · "
      "{} "
      "UTC</p>\n<div class=\"cards\">\n",
      pass ? "pass" : "fail", pass ? "pass" : "fail", escape_html(report.subject),
      report.count(Outcome::pass), report.count(Outcome::fail), report.count(Outcome::skipped),
      escape_html(report.version), escape_html(report.begun));
  append_facts(out, "Model", report.model);
  append_facts(out, "Machine", report.machine);
  out += "</div>\n";
}

void append_summary(std::string& out, const Report& report) {
  out +=
      "<h2>Summary</h2>\n<div class=\"card\"><table class=\"summary\"><tr><th></th><th>Check</th>"
      "<th>Result</th><th class=\"seconds\">Time</th></tr>\n";
  for (const Check& check : report.checks) {
    out += fmt::format(
        "<tr><td>{}</td><td><a href=\"#{}\">{}</a></td><td>{}: {}</td><td class=\"seconds\">{}</td>"
        "</tr>\n",
        tag(check.outcome), escape_html(check.id), escape_html(check.id), escape_html(check.title),
        escape_html(check.summary), duration_text(check));
  }
  out += "</table></div>\n";
}

void append_table(std::string& out, const Table& table) {
  out += "<div class=\"scroll\"><table><tr>";
  for (const std::string& column : table.columns) {
    out += fmt::format("<th>{}</th>", escape_html(column));
  }
  out += "</tr>\n";
  for (const std::vector<std::string>& row : table.rows) {
    out += "<tr>";
    for (const std::string& cell : row) {
      out += fmt::format("<td>{}</td>", escape_html(cell));
    }
    out += "</tr>\n";
  }
  out += "</table></div>\n";
}

void append_check(std::string& out, const Check& check) {
  out += fmt::format(
      "<section id=\"{}\"><header><h3>{}</h3>{}<span class=\"proves\">{}{}{}</span></header>\n"
      "<p class=\"proves\">{}</p>\n<p>{}</p>\n",
      escape_html(check.id), escape_html(check.title), tag(check.outcome), escape_html(check.id),
      check.outcome == Outcome::skipped ? "" : " · ", duration_text(check),
      escape_html(check.proves), escape_html(check.summary));
  if (!check.findings.empty()) {
    out += "<ul class=\"findings\">\n";
    for (const std::string& finding : check.findings) {
      out += fmt::format("<li>{}</li>\n", escape_html(finding));
    }
    const auto kept = static_cast<std::int64_t>(check.findings.size());
    if (check.finding_count > kept) {
      out += fmt::format("<li>and {} more</li>\n", check.finding_count - kept);
    }
    out += "</ul>\n";
  }
  if (check.table && !check.table->rows.empty()) {
    append_table(out, *check.table);
  }
  out += "</section>\n";
}

}  // namespace

std::string to_html(const Report& report) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  out += fmt::format("<title>Sluice validation: {}</title>\n", report.pass() ? "pass" : "fail");
  out += style();
  out += "</head>\n<body>\n<main>\n";
  append_header(out, report);
  append_summary(out, report);
  if (!report.plots.empty() || !report.bars.empty()) {
    out += "<h2>Measurements</h2>\n<div class=\"plots\">\n";
    for (const Plot& plot : report.plots) {
      out += svg_plot(plot);
    }
    if (!report.bars.empty()) {
      out += "<figure><figcaption>Memory</figcaption>\n";
      for (const StackedBar& bar : report.bars) {
        out += svg_bar(bar);
      }
      out += "</figure>\n";
    }
    out += "</div>\n";
  }
  out += "<h2>Checks</h2>\n";
  for (const Check& check : report.checks) {
    append_check(out, check);
  }
  out += fmt::format(
      "<footer>Made by <code>sluice validate</code>, sluice {}.</footer>\n</main>\n"
      "</body>\n</html>\n",
      escape_html(report.version));
  return out;
}

}  // namespace sluice::validate
