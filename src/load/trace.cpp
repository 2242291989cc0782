#include "load/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"

namespace sluice::load {
namespace {

namespace json = boost::json;

struct Line {
  std::size_t number = 0;  // from 1
  double at = 0;
  std::optional<std::string> conversation;
  json::object body;
};

class RecordedConversation final : public Conversation {
 public:
  void add(Line line) { lines_.push_back(std::move(line)); }
  const Line& last() const { return lines_.back(); }

  bool is_over() const override { return next_ == lines_.size(); }
  std::optional<double> next_at() const override { return lines_[next_].at; }
  json::object next_body() const override {
    SLUICE_CHECK(!is_over());
    return lines_[next_].body;
  }
  void take(const ChatAnswer* /*answer*/) override { ++next_; }

 private:
  std::vector<Line> lines_;
  std::size_t next_ = 0;
};

std::unexpected<Error> refuse(std::string_view field, std::string_view want) {
  return fail(ErrorCode::invalid_argument, fmt::format("{}: {}", field, want));
}

Result<void> check_body(const json::object& body) {
  for (const std::string_view ours : {"model", "stream", "stream_options"}) {
    if (body.contains(ours)) {
      return refuse(fmt::format("body.{}", ours), "is set by the replay and must not be there");
    }
  }
  const json::value* messages = body.if_contains("messages");
  if (messages == nullptr || !messages->is_array() || messages->get_array().empty()) {
    return refuse("body.messages", "want an array of messages");
  }
  return {};
}

Result<Line> parse_line(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object()) {
    return fail(ErrorCode::invalid_argument,
                error ? "no JSON: " + error.message() : "want an object");
  }
  Line line;
  bool has_at = false;
  bool has_body = false;
  for (auto& member : value.get_object()) {
    const std::string_view name = member.key();
    json::value& field = member.value();
    if (name == "at") {
      has_at = true;
      line.at = field.is_number() ? field.to_number<double>() : -1.0;
      if (!std::isfinite(line.at) || line.at < 0.0) {
        return refuse("at", "want seconds, 0 or more");
      }
    } else if (name == "conversation") {
      if (field.is_string()) {
        line.conversation = std::string(field.get_string());
      } else if (field.is_int64()) {
        line.conversation = fmt::format("{}", field.get_int64());
      } else {
        return refuse("conversation", "want a string or an integer");
      }
    } else if (name == "body") {
      has_body = field.is_object();
      if (!has_body) {
        return refuse("body", "want an object");
      }
      line.body = std::move(field.get_object());
      SLUICE_TRY(check_body(line.body));
    } else {
      return refuse(name.substr(0, 64), "is no field of a trace (at, conversation, body)");
    }
  }
  if (!has_at || !has_body) {
    return refuse(has_at ? "body" : "at", "is missing");
  }
  return line;
}

// Lines by conversation, in the order in which the conversations began to be written down.
class Assembly {
 public:
  Result<void> add(Line line) {
    if (!line.conversation) {
      begin()->add(std::move(line));
      return {};
    }
    RecordedConversation*& known = named_[*line.conversation];
    if (known == nullptr) {
      known = begin();
    } else if (line.at < known->last().at) {
      return refuse("at", fmt::format("{} is before the {} of line {}, an earlier request of the "
                                      "conversation",
                                      line.at, known->last().at, known->last().number));
    }
    known->add(std::move(line));
    return {};
  }

  std::vector<PlannedConversation> take() {
    std::vector<std::pair<double, std::size_t>> order;
    order.reserve(conversations_.size());
    for (std::size_t i = 0; i < conversations_.size(); ++i) {
      order.emplace_back(*conversations_[i]->next_at(), i);
    }
    std::ranges::sort(order);
    std::vector<PlannedConversation> result;
    result.reserve(order.size());
    for (const auto& [at, i] : order) {
      result.push_back({.conversation = std::move(conversations_[i]), .at = at});
    }
    return result;
  }

 private:
  RecordedConversation* begin() {
    conversations_.push_back(std::make_unique<RecordedConversation>());
    return conversations_.back().get();
  }

  std::vector<std::unique_ptr<RecordedConversation>> conversations_;
  std::map<std::string, RecordedConversation*> named_;
};

}  // namespace

Result<Trace> parse_trace(std::string_view text, std::string_view name) {
  Trace trace;
  Assembly assembly;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line_text = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line_text.find_first_not_of(" \t\r") == std::string_view::npos) {
      continue;
    }
    Result<Line> line = parse_line(line_text);
    Result<void> added;
    if (line) {
      line->number = number;
      added = assembly.add(std::move(*line));
    }
    if (!line || !added) {
      Error error = !line ? std::move(line).error() : std::move(added).error();
      error.message = fmt::format("{} line {}: {}", name, number, error.message);
      return std::unexpected(std::move(error));
    }
    ++trace.requests;
  }
  if (trace.requests == 0) {
    return fail(ErrorCode::invalid_argument, fmt::format("{}: has no requests", name));
  }
  trace.conversations = assembly.take();
  return trace;
}

}  // namespace sluice::load
