#include "validate/filler_text.h"

#include <fmt/format.h>

#include <vector>

namespace sluice::validate {
namespace {

using Words = std::vector<const char*>;

constexpr double kFirstGuess = 3.5;  // bytes per token
constexpr std::int64_t kMeasuredTokens = 300;

const Words kPeople{"the baker",  "the farmer", "the teacher",  "the sailor",   "the painter",
                    "the doctor", "an old man", "my neighbour", "a young girl", "the captain"};
const Words kPlaces{"market", "bridge", "river",  "harbour", "garden", "forest",
                    "mill",   "tower",  "school", "lake",    "field",  "village"};
const Words kKinds{"old", "new", "small", "big", "quiet", "cold", "warm", "dark", "empty", "busy"};
const Words kThings{"bread", "soup",  "apples", "honey", "letters", "flowers",
                    "ropes", "lamps", "boxes",  "books", "chairs",  "fish"};
const Words kTimes{"in the morning", "at night",  "in spring", "in winter",
                   "on Monday",      "last week", "yesterday", "after the rain"};
const Words kDeeds{"made", "sold", "bought", "found", "lost", "carried", "painted", "wanted"};
const Words kWays{"walked to", "came from", "worked near", "waited at", "talked about"};
const Words kEnds{"because it was late", "but nobody knew why", "and then went home",
                  "since there was time", "and the day was good"};

}  // namespace

Result<double> FillerText::measure(AskedServer& server) {
  FillerText filler(1, kFirstGuess);
  std::int64_t counted[2] = {0, 0};
  const std::string text = filler.tokens(kMeasuredTokens);
  const std::string twice = text + " " + text;
  for (int i = 0; i < 2; ++i) {
    const ChatAnswer reply =
        SLUICE_TRY(server.ask({.messages = {message("user", i == 0 ? text : twice)},
                               .salt = server.fresh_salt(),
                               .tokens_max = 1}));
    counted[i] = reply.prompt_tokens;
  }
  // The difference leaves out what the template adds.
  if (counted[0] <= 0 || counted[1] <= counted[0]) {
    return fail(ErrorCode::corrupt_data, "the server does not say how many tokens a prompt has");
  }
  return static_cast<double>(text.size() + 1) / static_cast<double>(counted[1] - counted[0]);
}

std::string FillerText::tokens(std::int64_t count) {
  const auto bytes = static_cast<std::size_t>(static_cast<double>(count) * bytes_per_token_);
  std::string text;
  while (text.size() < bytes) {
    text += (text.empty() ? "" : random_() % 7 == 0 ? "\n\n" : " ") + sentence();
  }
  return text;
}

std::string FillerText::code() {
  return std::to_string(1000 + random_() % 9000);
}

std::string FillerText::sentence() {
  std::string text;
  switch (random_() % 5) {
    case 0:
      text = fmt::format("{} {} the {} {} {}.", pick(kPeople), pick(kWays), pick(kKinds),
                         pick(kPlaces), pick(kEnds));
      break;
    case 1:
      text = fmt::format("{} {} {} {} {}.", pick(kTimes), pick(kPeople), pick(kDeeds),
                         pick(kThings), pick(kEnds));
      break;
    case 2:
      text = fmt::format("the {} was {}, {}.", pick(kPlaces), pick(kKinds), pick(kEnds));
      break;
    case 3:
      text = fmt::format("{} {} {} and {} {}.", pick(kPeople), pick(kDeeds), pick(kThings),
                         pick(kThings), pick(kTimes));
      break;
    default:
      text =
          fmt::format("the road to the {} was {} {}.", pick(kPlaces), pick(kKinds), pick(kTimes));
  }
  text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

}  // namespace sluice::validate
