#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <cmath>

#include "validate/report_formats.h"

namespace sluice::validate {
namespace {

namespace json = boost::json;

json::object facts_of(const std::vector<Fact>& facts) {
  json::object object;
  for (const Fact& fact : facts) {
    object[fact.name] = fact.value;
  }
  return object;
}

json::value number(double value) {
  return std::isfinite(value) ? json::value(value) : json::value(nullptr);
}

json::object check_of(const Check& check) {
  json::object counts;
  for (const Count& count : check.counts) {
    counts[count.name] = count.value;
  }
  json::object figures;
  for (const Figure& figure : check.figures) {
    figures[figure.name] = number(figure.value);
  }
  json::object object{
      {"id", check.id},
      {"title", check.title},
      {"outcome", check.outcome == Outcome::fail ? "fail" : to_string(check.outcome)},
      {"summary", check.summary},
      {"proves", check.proves},
      {"seconds", number(check.seconds)},
      {"finding_count", check.finding_count},
      {"findings", json::value_from(check.findings)},
      {"counts", std::move(counts)}};
  if (!figures.empty()) {
    object["figures"] = std::move(figures);
  }
  if (check.table) {
    object["table"] = {{"columns", json::value_from(check.table->columns)},
                       {"rows", json::value_from(check.table->rows)}};
  }
  return object;
}

json::array plots_of(const std::vector<Plot>& plots) {
  json::array list;
  for (const Plot& plot : plots) {
    json::array series;
    for (const Series& one : plot.series) {
      json::array points;
      for (const Point& point : one.points) {
        points.emplace_back(json::array{number(point.x), number(point.y)});
      }
      series.emplace_back(json::object{{"name", one.name}, {"points", std::move(points)}});
    }
    list.emplace_back(json::object{{"title", plot.title},
                                   {"x_unit", "tokens"},
                                   {"y_unit", plot.y_unit},
                                   {"series", std::move(series)}});
  }
  return list;
}

json::array bars_of(const std::vector<StackedBar>& bars) {
  json::array list;
  for (const StackedBar& bar : bars) {
    json::array parts;
    for (const BarPart& part : bar.parts) {
      parts.emplace_back(json::object{{"name", part.name}, {"bytes", number(part.bytes)}});
    }
    list.emplace_back(json::object{{"title", bar.title}, {"parts", std::move(parts)}});
  }
  return list;
}

}  // namespace

std::string to_json(const Report& report) {
  json::array checks;
  for (const Check& check : report.checks) {
    checks.emplace_back(check_of(check));
  }
  return json::serialize(json::object{{"pass", report.pass()},
                                      {"version", report.version},
                                      {"subject", report.subject},
                                      {"begun", report.begun},
                                      {"machine", facts_of(report.machine)},
                                      {"model", facts_of(report.model)},
                                      {"checks", std::move(checks)},
                                      {"plots", plots_of(report.plots)},
                                      {"memory", bars_of(report.bars)}});
}

}  // namespace sluice::validate
