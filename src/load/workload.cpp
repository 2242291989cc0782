#include "load/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <utility>

#include "base/check.h"

namespace sluice::load {
namespace {

namespace json = boost::json;

constexpr std::array kWords{
    "river",  "carries", "small",    "boats",  "toward",  "the",    "harbour", "where",  "people",
    "trade",  "fruit",   "and",      "cloth",  "under",   "bright", "windows", "while",  "a",
    "clerk",  "writes",  "numbers",  "in",     "long",    "books",  "about",   "weight", "price",
    "season", "letters", "arrive",   "from",   "distant", "towns",  "with",    "news",   "of",
    "roads",  "bridges", "machines", "that",   "count",   "grain",  "before",  "winter", "because",
    "every",  "house",   "keeps",    "one",    "lamp",    "near",   "its",     "door",   "to",
    "guide",  "friends", "who",      "travel", "late",    "or",     "lose",    "their",  "way"};

constexpr std::array<std::pair<WorkloadKind, std::string_view>, 3> kNames{
    {{WorkloadKind::chat, "chat"},
     {WorkloadKind::agent, "agent"},
     {WorkloadKind::prompts, "prompts"}}};

// Streams of one seed: the system prompt has the first, conversations those that follow.
constexpr std::uint64_t kSystemStream = 0;
constexpr std::uint64_t kArrivalStream = 1;
constexpr std::uint64_t kConversationStreams = 2;

std::string text_of(RandomStream& random, std::int64_t words) {
  constexpr std::uint64_t kSentenceWords = 12;
  std::string text;
  std::uint64_t left = 0;  // words to the end of the sentence
  for (std::int64_t i = 0; i < words; ++i) {
    std::string word(kWords[random.below(kWords.size())]);
    if (left == 0) {
      left = 4 + random.below(kSentenceWords);
      word[0] = static_cast<char>(word[0] - 'a' + 'A');
      text += text.empty() ? "" : ". ";
    } else {
      text += ' ';
    }
    text += word;
    --left;
  }
  return text + '.';
}

// From half to one and a half of `words`, at least one.
std::int64_t about(RandomStream& random, std::int64_t words) {
  return std::max<std::int64_t>(
      1,
      words / 2 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(words) + 1)));
}

json::object message(std::string_view role, std::string_view content) {
  return {{"role", role}, {"content", content}};
}

json::value tool(std::string_view name, std::string_view description, std::string_view parameter) {
  const json::object parameters{
      {"type", "object"},
      {"properties", json::object{{parameter, json::object{{"type", "string"}}}}},
      {"required", json::array{parameter}}};
  return json::object{
      {"type", "function"},
      {"function",
       json::object{{"name", name}, {"description", description}, {"parameters", parameters}}}};
}

json::array tools() {
  return {tool("read_file", "Returns the text of a file.", "path"),
          tool("search", "Finds the lines that contain a text.", "query"),
          tool("run_command", "Runs a command and returns what it prints.", "command"),
          tool("write_note", "Keeps a note for later.", "note")};
}

class GrowingConversation final : public Conversation {
 public:
  GrowingConversation(const WorkloadOptions& options, std::uint64_t number)
      : options_(options), random_(options.seed, kConversationStreams + number) {
    if (options.kind == WorkloadKind::prompts) {
      options_.turns = 1;
    } else if (options.system_words > 0) {
      RandomStream shared(options.seed, kSystemStream);
      messages_.push_back(message("system", text_of(shared, options.system_words)));
    }
    messages_.push_back(message("user", text_of(random_, about(random_, options.prompt_words))));
  }

  bool is_over() const override { return turn_ >= options_.turns; }
  std::optional<double> next_at() const override { return std::nullopt; }

  json::object next_body() const override {
    SLUICE_CHECK(!is_over());
    json::object body{
        {"messages", messages_}, {"max_tokens", options_.max_tokens}, {"temperature", 0}};
    if (options_.kind == WorkloadKind::agent) {
      body["tools"] = tools();
    }
    return body;
  }

  void take(const ChatAnswer* reply) override {
    if (reply == nullptr) {
      turn_ = options_.turns;  // there is no answer that a next message could follow
      return;
    }
    ++turn_;
    json::object answer = message("assistant", reply->text);
    if (!reply->tool_calls.empty()) {
      answer["tool_calls"] = reply->tool_calls;
    }
    messages_.push_back(std::move(answer));
    if (reply->tool_calls.empty()) {
      messages_.push_back(message("user", next_text()));
    }
    for (const json::value& call : reply->tool_calls) {
      json::object result = message("tool", next_text());
      result["tool_call_id"] = call.at("id");
      messages_.push_back(std::move(result));
    }
  }

 private:
  std::string next_text() {
    return options_.kind == WorkloadKind::agent
               ? fmt::format("Result of step {}: {}", turn_,
                             text_of(random_, about(random_, options_.result_words)))
               : text_of(random_,
                         about(random_, std::max<std::int64_t>(options_.prompt_words / 2, 1)));
  }

  WorkloadOptions options_;
  RandomStream random_;
  json::array messages_;  // of the next request
  std::int64_t turn_ = 0;
};

}  // namespace

std::optional<WorkloadKind> workload_from_name(std::string_view name) {
  for (const auto& [kind, known] : kNames) {
    if (known == name) {
      return kind;
    }
  }
  return std::nullopt;
}

std::string_view to_string(WorkloadKind kind) {
  return kNames[static_cast<std::size_t>(kind)].second;
}

std::unique_ptr<Conversation> make_conversation(const WorkloadOptions& options,
                                                std::uint64_t number) {
  return std::make_unique<GrowingConversation>(options, number);
}

Arrivals::Arrivals(double rate, std::uint64_t seed)
    : mean_gap_(1.0 / rate), random_(seed, kArrivalStream) {
  SLUICE_CHECK(rate > 0.0);
}

double Arrivals::next() {
  now_ += random_.exponential(mean_gap_);
  return now_;
}

}  // namespace sluice::load
