#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>

#include "validate/filler_text.h"
#include "validate/server_checks.h"

namespace sluice::validate {
namespace {

namespace json = boost::json;

constexpr std::int64_t kSpareTokens = 160;  // template, facts, question and answer
// The question and the template's end, and the last block.
constexpr std::int64_t kNotReusedMax = 128;

struct HiddenFact {
  std::string key;
  std::string value;

  std::string statement() const { return fmt::format(" The {} is {}. ", key, value); }
  std::string question() const { return fmt::format("\n\nWhat is the {}?", key); }
};

// A text with two facts, and requests that ask for one of them.
class Hay {
 public:
  Hay(std::uint64_t seed, std::int64_t tokens, double bytes_per_token) {
    FillerText filler(seed, bytes_per_token);
    facts_[0] = {.key = "access code for Anna", .value = filler.code()};
    facts_[1] = {.key = "door code for Henry", .value = filler.code()};
    const std::int64_t third = tokens / 3;
    text_ = "Read this text.\n\n" + filler.tokens(third) + facts_[0].statement() +
            filler.tokens(third) + facts_[1].statement() + filler.tokens(tokens - 2 * third);
  }

  // `marked`: the text ends where a prefix is worth keeping.
  Question question(std::size_t fact, std::string salt, bool marked) const {
    json::object text{{"type", "text"}, {"text", text_}};
    if (marked) {
      text["cache_control"] = {{"type", "ephemeral"}};
    }
    json::array parts{std::move(text),
                      json::object{{"type", "text"}, {"text", facts_[fact].question()}}};
    return {.messages = {json::object{{"role", "user"}, {"content", std::move(parts)}}},
            .salt = std::move(salt),
            .tokens_max = 32};
  }

  bool is_found(std::size_t fact, const ChatAnswer& reply) const {
    return reply.text.find(facts_[fact].value) != std::string::npos;
  }
  std::string wanted(std::size_t fact, const ChatAnswer& reply) const {
    return fmt::format("the {} is {}, the answer was: {}", facts_[fact].key, facts_[fact].value,
                       reply.text.substr(0, 120));
  }

 private:
  HiddenFact facts_[2];
  std::string text_;
};

}  // namespace

Result<void> check_needles(AskedServer& server, const ServerCheckOptions& options,
                           const std::vector<std::int64_t>& lengths, Check& check) {
  check.table = Table{.columns = {"tokens", "first", "second", "reused", "cold", "warm", "equal"},
                      .rows = {}};
  bool finds = false;  // anything, so far
  std::int64_t asked = 0;
  std::int64_t found = 0;
  for (const std::int64_t length : lengths) {
    if (server.context() > 0 && length + kSpareTokens / 4 > server.context()) {
      check.table->rows.push_back(
          {std::to_string(length), "beyond the context", "", "", "", "", ""});
      continue;
    }
    const Hay hay(options.seed + static_cast<std::uint64_t>(length), length - kSpareTokens,
                  options.bytes_per_token);
    const std::string salt = server.fresh_salt();
    const ChatAnswer first = SLUICE_TRY(server.ask(hay.question(0, salt, server.is_sluice())));
    const ChatAnswer second = SLUICE_TRY(server.ask(hay.question(1, salt, server.is_sluice())));
    const ChatAnswer cold =
        SLUICE_TRY(server.ask(hay.question(1, server.fresh_salt(), server.is_sluice())));
    const bool equal = essence(second) == essence(cold);
    const bool found_first = hay.is_found(0, first);
    const bool found_second = hay.is_found(1, second);
    finds = finds || found_first || found_second;
    asked += 2;
    found += (found_first ? 1 : 0) + (found_second ? 1 : 0);
    check.table->rows.push_back(
        {std::to_string(second.prompt_tokens), found_first ? "found" : "missed",
         found_second ? "found" : "missed", std::to_string(second.cached_tokens),
         seconds_text(first_seconds(cold)), seconds_text(first_seconds(second)),
         equal ? "yes" : "NO"});
    if (!equal) {
      check.add_finding(
          fmt::format("{} tokens: the second answer differs from the same request "
                      "without the cache",
                      second.prompt_tokens));
    }
    if (server.is_sluice() && second.cached_tokens < second.prompt_tokens - kNotReusedMax) {
      check.add_finding(fmt::format("{} tokens: {} reused for the second question, want {}",
                                    second.prompt_tokens, second.cached_tokens,
                                    second.prompt_tokens - kNotReusedMax));
    }
    if (finds && !found_first) {
      check.add_finding(hay.wanted(0, first));
    }
    if (finds && !found_second) {
      check.add_finding(hay.wanted(1, second));
    }
  }
  check.counts = {{"asked", asked}, {"found", found}};
  check.summary = fmt::format("{} of {} facts found; second questions equal what is answered cold",
                              found, asked);
  if (check.outcome == Outcome::fail) {
    check.summary = fmt::format("{} of {} facts found", found, asked);
  }
  if (asked == 0) {
    check.skip("the context of the server is too short");
  } else if (!finds) {
    check.skip("this model does not find needles (answers from the cache were equal)");
  }
  return {};
}

}  // namespace sluice::validate
