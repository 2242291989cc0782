// What `sluice validate` found, as data: facts of machine and model, the checks with what they
// prove, and what was measured along the way. Knows no model, server or terminal; report_formats.h
// renders it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::validate {

inline constexpr std::size_t kFindingsMax = 12;  // kept of one check, in words

enum class Outcome { pass, fail, skipped };

struct Fact {
  std::string name;
  std::string value;
};

// A number of a check that scripts may look at, without a unit.
struct Count {
  std::string name;
  std::int64_t value = 0;
};

// The same, measured, with its unit in the name.
struct Figure {
  std::string name;
  double value = 0.0;
};

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // as many cells as columns
};

struct Check {
  std::string id;      // "cuts": what --only and --skip name
  std::string title;   // "prompt in pieces"
  std::string proves;  // one sentence
  Outcome outcome = Outcome::pass;
  std::string summary;  // one line; why, when it was skipped
  double seconds = 0.0;
  std::vector<std::string> findings = {};  // what was wrong: the first kFindingsMax
  std::int64_t finding_count = 0;
  std::optional<Table> table = std::nullopt;
  std::vector<Count> counts = {};
  std::vector<Figure> figures = {};

  void add_finding(std::string what) {
    outcome = Outcome::fail;
    ++finding_count;
    if (findings.size() < kFindingsMax) {
      findings.push_back(std::move(what));
    }
  }
  // Nothing was compared. What was found before stays found.
  void skip(std::string why) {
    if (outcome == Outcome::pass) {
      outcome = Outcome::skipped;
      summary = std::move(why);
    }
  }
};

struct Point {
  double x = 0.0;
  double y = 0.0;
};

struct Series {
  std::string name;
  std::vector<Point> points;  // ascending x
};

// x is in tokens and drawn on a logarithmic axis, y begins at zero.
struct Plot {
  std::string title;
  std::string y_unit;  // "tokens/s"
  std::vector<Series> series;
};

struct BarPart {
  std::string name;
  double bytes = 0.0;
};

struct StackedBar {
  std::string title;
  std::vector<BarPart> parts;
};

struct Report {
  std::string version;
  std::string subject;  // directory or URL
  std::string begun;    // UTC, "2026-01-31 12:00:00"
  std::vector<Fact> machine;
  std::vector<Fact> model;
  std::vector<Check> checks;
  std::vector<Plot> plots;
  std::vector<StackedBar> bars;

  // What was skipped is no failure; the counts say how much was checked.
  bool pass() const { return count(Outcome::fail) == 0; }
  std::ptrdiff_t count(Outcome outcome) const {
    return std::ranges::count(checks, outcome, &Check::outcome);
  }
};

}  // namespace sluice::validate
