#include "validate/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace sluice::validate {
namespace {

// The drawing in its own units; the page scales it.
constexpr double kWidth = 560;
constexpr double kHeight = 300;
constexpr double kLeft = 58;
constexpr double kRight = 16;
constexpr double kTop = 16;
constexpr double kBottom = 40;
constexpr int kColours = 6;  // classes c0 .. c5 of the style
constexpr double kTickCount = 4;
constexpr std::size_t kXTicksMax = 8;

bool is_drawable(const Point& point) {
  return std::isfinite(point.x) && std::isfinite(point.y) && point.x > 0 && point.y >= 0;
}

// What is drawn: the points that can be, and the rectangle of values they span.
struct Frame {
  std::vector<Series> series;
  double x_min = 0.0;  // log2 of tokens
  double x_max = 0.0;
  double y_max = 0.0;
  double y_step = 1.0;

  double x_of(double tokens) const {
    return kLeft + (std::log2(tokens) - x_min) / (x_max - x_min) * (kWidth - kLeft - kRight);
  }
  double y_of(double value) const {
    return kHeight - kBottom - value / y_max * (kHeight - kTop - kBottom);
  }
  bool empty() const {
    return std::ranges::all_of(series, [](const Series& one) { return one.points.empty(); });
  }
};

// 1, 2 or 5 times a power of ten, such that about kTickCount steps reach `largest`.
double tick_step(double largest) {
  if (largest <= 0) {
    return 1.0;
  }
  const double rough = largest / kTickCount;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      return factor * power;
    }
  }
  return 10.0 * power;
}

Frame frame_of(const Plot& plot) {
  Frame frame;
  double low = INFINITY;
  double high = -INFINITY;
  double largest = 0.0;
  for (const Series& series : plot.series) {
    Series& kept = frame.series.emplace_back(Series{.name = series.name, .points = {}});
    std::ranges::copy_if(series.points, std::back_inserter(kept.points), is_drawable);
    for (const Point& point : kept.points) {
      low = std::min(low, std::log2(point.x));
      high = std::max(high, std::log2(point.x));
      largest = std::max(largest, point.y);
    }
  }
  // A little air on both sides; a single x stands in the middle.
  const double air = high > low ? (high - low) * 0.04 : 1.0;
  frame.x_min = low - air;
  frame.x_max = high + air;
  frame.y_step = tick_step(largest);
  frame.y_max = std::max(1.0, std::ceil(largest / frame.y_step - 1e-9)) * frame.y_step;
  return frame;
}

// "512", "4K": tokens at 1024 to the K, rounded.
std::string tokens_text(double tokens) {
  constexpr double kKilo = 1024;
  if (tokens < kKilo) {
    return fmt::format("{:.0f}", tokens);
  }
  const double kilos = tokens / kKilo;
  return kilos < 10 && std::abs(kilos - std::round(kilos)) > 0.05
             ? fmt::format("{:.1f}K", kilos)
             : (kilos < kKilo ? fmt::format("{:.0f}K", kilos)
                              : fmt::format("{:.0f}M", kilos / kKilo));
}

void append_grid(std::string& out, const Frame& frame) {
  const double right = kWidth - kRight;
  for (double value = 0; value <= frame.y_max * (1 + 1e-9); value += frame.y_step) {
    const double y = frame.y_of(value);
    out += fmt::format(
        "<line class=\"grid\" x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\"/>"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        kLeft, y, right, y, kLeft - 8, y + 4, short_number(value));
  }
  std::vector<double> ticks;
  for (const Series& series : frame.series) {
    for (const Point& point : series.points) {
      ticks.push_back(point.x);
    }
  }
  std::ranges::sort(ticks);
  double last = -INFINITY;
  const double apart = (right - kLeft) / static_cast<double>(kXTicksMax);
  for (const double tick : ticks) {
    const double x = frame.x_of(tick);
    if (x - last < apart) {
      continue;
    }
    last = x;
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x,
                       kHeight - kBottom + 18, tokens_text(tick));
  }
  out += fmt::format("<text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"end\">tokens</text>\n",
                     right, kHeight - 4);
}

void append_series(std::string& out, const Frame& frame, const Series& series, int colour) {
  if (series.points.size() > 1) {
    std::string path;
    for (const Point& point : series.points) {
      path += fmt::format("{:.1f},{:.1f} ", frame.x_of(point.x), frame.y_of(point.y));
    }
    out += fmt::format("<polyline class=\"line s{}\" points=\"{}\"/>\n", colour, path);
  }
  for (const Point& point : series.points) {
    out += fmt::format(
        "<circle class=\"c{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}: {} at {:.0f} tokens"
        "</title></circle>\n",
        colour, frame.x_of(point.x), frame.y_of(point.y), escape_html(series.name),
        short_number(point.y), point.x);
  }
}

std::string legend_item(std::string_view text, int colour) {
  return fmt::format("<li><i class=\"b{}\"></i>{}</li>", colour, escape_html(text));
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') {
          out += c;
        }
    }
  }
  return out;
}

std::string short_number(double value) {
  constexpr std::array<std::pair<double, const char*>, 3> kScales{
      {{1e9, "G"}, {1e6, "M"}, {1e4, "k"}}};
  if (!std::isfinite(value)) {
    return "–";
  }
  if (std::abs(value) >= 1e12) {
    return fmt::format("{:.3g}", value);
  }
  for (const auto& [limit, suffix] : kScales) {
    if (std::abs(value) >= limit) {
      return fmt::format("{:.4g}{}", value / (limit == 1e4 ? 1e3 : limit), suffix);
    }
  }
  return std::abs(value) >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.2f} {}", bytes, kUnits[unit]);
}

std::string svg_plot(const Plot& plot) {
  const std::string title = escape_html(plot.title);
  const Frame frame = frame_of(plot);
  std::string out =
      fmt::format("<figure><figcaption>{} · {}</figcaption>\n", title, escape_html(plot.y_unit));
  if (frame.empty()) {
    return out + "<p class=\"none\">no measurements</p></figure>\n";
  }
  out += fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", kWidth,
                     kHeight, title);
  append_grid(out, frame);
  std::string legend;
  int colour = 0;
  for (const Series& series : frame.series) {
    append_series(out, frame, series, colour % kColours);
    legend += legend_item(series.name, colour % kColours);
    ++colour;
  }
  out += "</svg>\n";
  if (frame.series.size() > 1) {
    out += fmt::format("<ul class=\"legend\">{}</ul>\n", legend);
  }
  return out + "</figure>\n";
}

std::string svg_bar(const StackedBar& bar) {
  double total = 0.0;
  for (const BarPart& part : bar.parts) {
    total += std::isfinite(part.bytes) ? std::max(0.0, part.bytes) : 0.0;
  }
  std::string out = fmt::format("<div class=\"stack\"><p>{} · {}</p>\n", escape_html(bar.title),
                                bytes_text(total));
  if (total <= 0) {
    return out + "<p class=\"none\">no measurements</p></div>\n";
  }
  constexpr double kBarWidth = 1000;
  constexpr double kBarHeight = 36;
  out += fmt::format(
      "<svg class=\"bar\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"{}\">\n",
      kBarWidth, kBarHeight, escape_html(bar.title));
  std::string legend;
  double x = 0.0;
  int colour = 0;
  for (const BarPart& part : bar.parts) {
    const double bytes = std::isfinite(part.bytes) ? std::max(0.0, part.bytes) : 0.0;
    const double width = bytes / total * kBarWidth;
    const std::string text = fmt::format("{} {}", part.name, bytes_text(bytes));
    out += fmt::format(
        "<rect class=\"c{}\" x=\"{:.2f}\" y=\"0\" width=\"{:.2f}\" height=\"{}\"><title>{}</title>"
        "</rect>\n",
        colour % kColours, x, width, kBarHeight, escape_html(text));
    legend += legend_item(text, colour % kColours);
    x += width;
    ++colour;
  }
  return out + fmt::format("</svg>\n<ul class=\"legend\">{}</ul></div>\n", legend);
}

}  // namespace sluice::validate
