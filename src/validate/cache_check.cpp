#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "validate/filler_text.h"
#include "validate/server_checks.h"

namespace sluice::validate {
namespace {

namespace json = boost::json;

// Tokens of a prompt that may have to be computed again: those after the last place where a state
// is kept (the beginning of a message, or a multiple of kStateEvery), and up to a block of 64
// before it.
constexpr std::int64_t kBlock = 64;
constexpr std::int64_t kTurn = 64;         // a short question and the template around it
constexpr std::int64_t kStateEvery = 256;  // where no message begins
constexpr std::int64_t kSpareTokens = 200;

// Two conversations that begin alike: `before` is asked first, then `measured`.
struct Case {
  std::string name;
  std::vector<json::array> before;
  json::array measured;
  std::int64_t computed_max = 0;  // prompt tokens that need not be reused
  json::array tools = {};
};

json::array weather_tools() {
  return {json::object{{"type", "function"},
                       {"function",
                        {{"name", "get_weather"},
                         {"description", "The weather of a city"},
                         {"parameters",
                          {{"type", "object"},
                           {"properties", {{"city", {{"type", "string"}}}}},
                           {"required", json::array{"city"}}}}}}}};
}

json::object tool_call_message() {
  return {{"role", "assistant"},
          {"content", ""},
          {"tool_calls",
           json::array{json::object{
               {"id", "call_1"},
               {"type", "function"},
               {"function", {{"name", "get_weather"}, {"arguments", R"({"city": "Paris"})"}}}}}}};
}

json::object reasoned_message(bool with_reasoning) {
  json::object answer = message("assistant", "It is a text about a village.");
  if (with_reasoning) {
    answer["reasoning_content"] = "The text tells of people and places. It is about a village.";
  }
  return answer;
}

std::vector<Case> make_cases(FillerText& filler, std::int64_t tokens) {
  const json::object system = message("system", "You answer briefly. " + filler.tokens(tokens));
  const std::string long_text = filler.tokens(tokens);
  const json::object told = message("user", long_text + "\n\nWhat is this about?");
  const json::object replied = message("assistant", "It is a text about a village.");
  const json::object weather = message("user", long_text + "\n\nWhat is the weather in Paris?");
  std::vector<Case> cases;
  cases.push_back(
      {.name = "the same again", .before = {{told}}, .measured = {told}, .computed_max = kBlock});
  // Where a text is cut inside a message there is a state at every 256th token only.
  cases.push_back({.name = "a shorter beginning",
                   .before = {{message("user", long_text + " " + filler.tokens(tokens))}},
                   .measured = {message("user", long_text)},
                   .computed_max = kStateEvery + kBlock + kTurn});
  cases.push_back({.name = "shared system prompt",
                   .before = {{system, message("user", "What is the first word?")}},
                   .measured = {system, message("user", "How many people are there?")},
                   .computed_max = kBlock + kTurn});
  cases.push_back({.name = "next turn",
                   .before = {{told}},
                   .measured = {told, replied, message("user", "Is it old?")},
                   .computed_max = kBlock + 2 * kTurn});
  cases.push_back({.name = "tools, next turn",
                   .before = {{weather}},
                   .measured = {weather, tool_call_message(),
                                json::object{{"role", "tool"},
                                             {"tool_call_id", "call_1"},
                                             {"content", R"({"sky": "clear", "degrees": 21})"}}},
                   .computed_max = kBlock + 3 * kTurn,
                   .tools = weather_tools()});
  cases.push_back({.name = "reasoning dropped",
                   .before = {{told, reasoned_message(true)}},
                   .measured = {told, reasoned_message(false), message("user", "Is it old?")},
                   .computed_max = kBlock + 2 * kTurn});
  cases.push_back({.name = "last message edited",
                   .before = {{told, replied, message("user", "Is it old?")}},
                   .measured = {told, replied, message("user", "Who is in it?")},
                   .computed_max = kBlock + 2 * kTurn});
  return cases;
}

// One row of the table, and what is wrong with it: requests that were sent together, each with its
// answer without the cache. Times are those of the one that waited longest.
struct Comparison {
  std::string name;
  const std::vector<ChatAnswer>& cold;
  const std::vector<ChatAnswer>& warm;
  std::int64_t computed_max = 0;
};

double longest_wait(const std::vector<ChatAnswer>& answers) {
  double seconds = 0.0;
  for (const ChatAnswer& answer : answers) {
    seconds = std::max(seconds, first_seconds(answer));
  }
  return seconds;
}

void add_row(const Comparison& at, bool is_sluice, Check& check) {
  bool all_equal = true;
  std::size_t worst = 0;  // where most is computed again
  const auto computed = [&](std::size_t i) {
    return at.warm[i].prompt_tokens - at.warm[i].cached_tokens;
  };
  for (std::size_t i = 0; i < at.warm.size(); ++i) {
    worst = computed(i) > computed(worst) ? i : worst;
    const bool equal = essence(at.cold[i]) == essence(at.warm[i]);
    all_equal = all_equal && equal;
    if (!equal) {
      check.add_finding(
          fmt::format("{}: the answer differs from the same request without the cache", at.name));
    }
  }
  const ChatAnswer& shown = at.warm[worst];
  const double cold = longest_wait(at.cold);
  const double warm = longest_wait(at.warm);
  const std::int64_t least = std::max<std::int64_t>(0, shown.prompt_tokens - at.computed_max);
  check.table->rows.push_back(
      {at.name, std::to_string(shown.prompt_tokens), std::to_string(shown.cached_tokens),
       is_sluice ? std::to_string(least) : "", seconds_text(cold), seconds_text(warm),
       warm > 0 ? fmt::format("{:.1f}", cold / warm) : "", all_equal ? "yes" : "NO"});
  if (is_sluice && shown.cached_tokens < least) {
    check.add_finding(fmt::format("{}: {} of {} tokens reused, want at least {}", at.name,
                                  shown.cached_tokens, shown.prompt_tokens, least));
  }
}

Result<void> compare_case(AskedServer& server, const Case& one, Check& check) {
  const std::string salt = server.fresh_salt();
  const std::vector<ChatAnswer> cold{SLUICE_TRY(
      server.ask({.messages = one.measured, .tools = one.tools, .salt = server.fresh_salt()}))};
  for (const json::array& messages : one.before) {
    SLUICE_TRY(server.ask({.messages = messages, .tools = one.tools, .salt = salt}));
  }
  const std::vector<ChatAnswer> warm{
      SLUICE_TRY(server.ask({.messages = one.measured, .tools = one.tools, .salt = salt}))};
  add_row({.name = one.name, .cold = cold, .warm = warm, .computed_max = one.computed_max},
          server.is_sluice(), check);
  return {};
}

// `count` questions to one system prompt at the same time, each against itself alone and cold.
Result<void> compare_together(AskedServer& server, const json::object& system, int count,
                              Check& check) {
  std::vector<Question> questions;
  std::vector<ChatAnswer> cold;
  const std::string salt = server.fresh_salt();
  for (int i = 0; i < count; ++i) {
    const std::string text = fmt::format("What is the word number {}?", i + 1);
    Question question{.messages = {system, message("user", text)}, .salt = server.fresh_salt()};
    cold.push_back(SLUICE_TRY(server.ask(question)));
    question.salt = salt;
    questions.push_back(std::move(question));
  }
  SLUICE_TRY(server.ask({.messages = {system, message("user", "Hello")}, .salt = salt}));
  std::vector<std::optional<Result<ChatAnswer>>> replies(questions.size());
  {
    std::vector<std::jthread> askers;
    askers.reserve(questions.size());
    for (std::size_t i = 0; i < questions.size(); ++i) {
      askers.emplace_back([&server, &questions, &replies, i] {
        HttpClient client = server.new_client();
        replies[i] = server.ask(client, questions[i]);
      });
    }
  }
  std::vector<ChatAnswer> warm;
  warm.reserve(replies.size());
  for (std::optional<Result<ChatAnswer>>& reply : replies) {
    warm.push_back(SLUICE_TRY(std::move(*reply)));
  }
  add_row({.name = fmt::format("{} at once", count),
           .cold = cold,
           .warm = warm,
           .computed_max = kBlock + kTurn},
          server.is_sluice(), check);
  return {};
}

}  // namespace

std::int64_t cache_context(std::int64_t tokens) {
  return 2 * tokens + kSpareTokens;
}

Result<void> check_cache(AskedServer& server, const ServerCheckOptions& options, Check& check) {
  check.table = Table{.columns = {"prompt", "tokens", "reused", "at least", "cold", "warm",
                                  "times faster", "equal"},
                      .rows = {}};
  FillerText filler(options.seed + 7, options.bytes_per_token);
  const std::int64_t tokens = options.cache_tokens;
  if (server.context() > 0 && server.context() < cache_context(tokens)) {
    check.skip(fmt::format("a context of {} tokens is too short", server.context()));
    return {};
  }
  for (const Case& one : make_cases(filler, tokens)) {
    SLUICE_TRY(compare_case(server, one, check));
  }
  const json::object system = message("system", "You answer briefly. " + filler.tokens(tokens));
  for (const int count :
       options.quick ? std::vector<int>{1, 4} : std::vector<int>{1, 2, 4, 8, 16}) {
    SLUICE_TRY(compare_together(server, system, count, check));
  }
  check.counts = {{"compared", static_cast<std::int64_t>(check.table->rows.size())}};
  check.summary = fmt::format("{} prompts answered with the cache and without, {} findings",
                              check.table->rows.size(), check.finding_count);
  return {};
}

}  // namespace sluice::validate
