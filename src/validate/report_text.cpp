#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "validate/report_formats.h"

namespace sluice::validate {
namespace {

// Code points of UTF-8, near enough to columns for what tables hold.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

void append_row(std::string& out, const std::vector<std::string>& cells,
                const std::vector<std::size_t>& widths) {
  std::string line = "   ";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += ' ' + cells[i];
    line.append(widths[i] - width_of(cells[i]) + 1, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

void append_table(std::string& out, const Table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::size_t width = width_of(table.columns[i]);
    for (const std::vector<std::string>& row : table.rows) {
      width = std::max(width, width_of(row[i]));
    }
    widths.push_back(width);
  }
  append_row(out, table.columns, widths);
  for (const std::vector<std::string>& row : table.rows) {
    append_row(out, row, widths);
  }
}

}  // namespace

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::pass:
      return "pass";
    case Outcome::fail:
      return "FAIL";
    case Outcome::skipped:
      break;
  }
  return "skipped";
}

std::string duration_text(const Check& check) {
  return check.outcome == Outcome::skipped ? std::string() : fmt::format("{:.1f} s", check.seconds);
}

std::string to_text(const Check& check) {
  std::string out = fmt::format("{:<8} {:<9} {}: {}", to_string(check.outcome), check.id,
                                check.title, check.summary);
  const std::string duration = duration_text(check);
  out += fmt::format("{}{}\n", duration.empty() ? "" : "; ", duration);
  for (const std::string& finding : check.findings) {
    out += fmt::format("    WRONG: {}\n", finding);
  }
  const auto kept = static_cast<std::int64_t>(check.findings.size());
  if (check.finding_count > kept) {
    out += fmt::format("    and {} more\n", check.finding_count - kept);
  }
  if (check.table && !check.table->rows.empty()) {
    append_table(out, *check.table);
  }
  return out;
}

std::string verdict_text(const Report& report) {
  return fmt::format("{} passed, {} failed, {} skipped\n{}\n", report.count(Outcome::pass),
                     report.count(Outcome::fail), report.count(Outcome::skipped),
                     report.pass() ? "pass" : "FAIL");
}

}  // namespace sluice::validate
