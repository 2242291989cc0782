// A report as text for a terminal, as JSON for scripts and as one HTML file for people
// (docs/VALIDATION.md). Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "validate/validation_report.h"

namespace sluice::validate {

std::string_view to_string(Outcome outcome);  // "pass", "FAIL", "skipped"

// How long the check took, "3.4 s"; empty when it was skipped.
std::string duration_text(const Check& check);

// One check as it ends: a line, what was wrong below it, its table. Ends with a newline.
std::string to_text(const Check& check);
// The last line: "pass" or "FAIL", with the counts before it.
std::string verdict_text(const Report& report);

// One JSON object on one line.
std::string to_json(const Report& report);

// A complete page that loads nothing: style and plots are inside, every text is escaped.
std::string to_html(const Report& report);

}  // namespace sluice::validate
