// Stop texts and reasoning, split anywhere: the answer does not depend on how its text arrives, no
// stop text is left in it, and nothing that was said before it is lost.
//
// Input: one byte of options, one for the pieces, the stop texts up to an empty line, the text.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer/answer_parser.h"

namespace {

struct Said {
  std::string reasoning;
  std::string content;
  std::optional<std::string> stop;
  bool operator==(const Said&) const = default;
};

Said parse(std::string_view text, std::size_t step, const sluice::AnswerRules& rules) {
  sluice::AnswerParser parser(rules);
  Said said;
  std::int64_t tokens = 0;
  const auto take = [&](const std::vector<sluice::AnswerDelta>& deltas) {
    for (const sluice::AnswerDelta& delta : deltas) {
      if (delta.call) {
        std::abort();  // there are no tools
      }
      (delta.part == sluice::AnswerPart::reasoning ? said.reasoning : said.content) += delta.text;
      tokens += std::ssize(delta.tokens);
    }
  };
  std::int64_t given = 0;
  for (std::size_t at = 0; at < text.size() && !parser.has_ended(); at += step) {
    take(parser.append(sluice::TokenEvent{}, text.substr(at, step)));
    ++given;
  }
  take(parser.finish("", false));
  if (parser.token_count() != given || tokens > given ||
      parser.reasoning_token_count() > parser.token_count()) {
    std::abort();
  }
  said.stop = parser.stop_text();
  return said;
}

std::vector<std::string> take_stops(std::string_view& text) {
  constexpr std::size_t kStopsMax = 4;
  std::vector<std::string> stops;
  while (!text.empty() && stops.size() < kStopsMax) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      break;
    }
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line.empty()) {
      break;
    }
    stops.emplace_back(line);
  }
  return stops;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const sluice::AnswerRules rules{.starts_inside_reasoning = (data[0] & 1U) != 0,
                                  .stop = take_stops(text),
                                  .stop_everywhere = (data[0] & 2U) != 0,
                                  .keep_stop_text = (data[0] & 4U) != 0};
  const Said whole = parse(text, text.size() + 1, rules);
  if (parse(text, 1, rules) != whole || parse(text, std::size_t{1} + data[1], rules) != whole) {
    std::abort();
  }
  for (const std::string& stop : rules.stop) {
    const bool left = !rules.keep_stop_text && whole.content.find(stop) != std::string::npos;
    if (left || (!rules.starts_inside_reasoning && !whole.stop &&
                 text.find(stop) != std::string_view::npos)) {
      std::abort();
    }
  }
  if (!rules.starts_inside_reasoning && !rules.keep_stop_text &&
      (!text.starts_with(whole.content) || (!whole.stop && text != whole.content))) {
    std::abort();
  }
  return 0;
}
