// Plots of a report as inline SVG. Colours come from the page's style (class names), so that light
// and dark are decided there. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "validate/validation_report.h"

namespace sluice::validate {

// Text with the five characters that mean something in HTML and XML replaced, and control
// characters dropped.
std::string escape_html(std::string_view text);

// "1.5M", "12k", "0.25": three digits that count.
std::string short_number(double value);

// "1.50 GiB".
std::string bytes_text(double bytes);

// Points that are not finite, not positive in x or negative in y are left out; a plot of none says
// so.
std::string svg_plot(const Plot& plot);

// One bar of all parts, their share in width, with a list below it.
std::string svg_bar(const StackedBar& bar);

}  // namespace sluice::validate
