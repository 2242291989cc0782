// Every step looks at the front of held_ and consumes some of it, or asks for more text whenever a
// longer held_ could change what it does.
#include "api/answer/call_body_parser.h"

#include <algorithm>

#include "api/answer/json_literal.h"

namespace sluice {
namespace {

const ParameterType kOpenType = {};

}  // namespace

CallBodyParser::CallBodyParser(const ToolSet& tools, const Tool* tool, bool wrapped)
    : tools_(&tools), tool_(tool), wrapped_(wrapped) {}

CallBodyParser CallBodyParser::after_arguments(const ToolSet& tools) {
  CallBodyParser parser(tools, nullptr, true);
  parser.state_ = State::after_function;
  return parser;
}

std::string CallBodyParser::append(std::string_view text) {
  held_ += text;
  return advance(false);
}

std::string CallBodyParser::finish() {
  return advance(true);
}

std::string CallBodyParser::advance(bool at_end) {
  std::string out;
  bool moved = true;
  while (moved && state_ != State::done) {
    const Lookahead ahead{held_, at_end};
    switch (state_) {
      case State::between:
        moved = step_between(ahead, out);
        break;
      case State::value_start:
        moved = !held_.empty() || at_end;
        if (held_.starts_with('\n')) {
          drop(1);
        }
        state_ = moved ? State::value : state_;
        break;
      case State::value:
        moved = step_value(ahead, out);
        break;
      case State::after_function:
        moved = step_after_function(ahead);
        break;
      case State::done:
        break;
    }
  }
  return out;
}

bool CallBodyParser::step_between(const Lookahead& ahead, std::string& out) {
  drop(held_.size() - ahead.after_space().text.size());
  const Lookahead next{held_, ahead.at_end};
  if (next.text.empty()) {
    if (next.at_end) {
      repaired_ = true;
      end_arguments(out);
      state_ = State::done;
    }
    return false;
  }
  const NamedTag parameter = match_named_tag(next, kParameterOpen);
  if (parameter.head_size > 0 && parameter.match != Match::more) {
    begin_parameter(parameter, out);
    return true;
  }
  const Match function = match_tag(next, kFunctionClose);
  const Match call = match_tag(next, kCallClose);
  const Match other = std::max(match_tag(next, kCallOpen), match_declared_function(next, *tools_));
  if (function == Match::yes) {
    drop(kFunctionClose.size());
    end_arguments(out);
    state_ = State::after_function;
    return true;
  }
  if (call == Match::yes || other == Match::yes) {
    drop(call == Match::yes ? kCallClose.size() : 0);
    repaired_ = true;
    end_arguments(out);
    state_ = State::done;
    return false;
  }
  if (std::max({function, call, other, parameter.match}) == Match::more) {
    return false;
  }
  repaired_ = true;
  drop(std::min(held_.find_first_of("< \t\r\n", 1), held_.size()));
  return true;
}

void CallBodyParser::begin_parameter(const NamedTag& tag, std::string& out) {
  const std::string key(tag.match == Match::yes ? tag.name : std::string_view());
  kept_ = !key.empty() && std::ranges::find(keys_, key) == keys_.end();
  repaired_ = repaired_ || !kept_;
  drop(tag.size > 0 ? tag.size : tag.head_size);
  state_ = State::value_start;
  value_.clear();
  if (!kept_) {
    return;
  }
  const ToolParameter* declared = tool_ != nullptr ? tool_->find(key) : nullptr;
  type_ = declared != nullptr ? &declared->type : &kOpenType;
  if (type_->is_text()) {
    out += keys_.empty() ? "{" : ", ";
    out += json_string(key) + ": \"";
  }
  keys_.push_back(key);
}

bool CallBodyParser::step_value(const Lookahead& ahead, std::string& out) {
  while (true) {
    const std::size_t at = std::min(held_.find('<', looked_), held_.size());
    Closer closer;
    if (at < held_.size()) {
      const char before = at > 0 ? held_[at - 1] : previous_;
      closer = match_closer(ahead.after(at), before == '\n');
      looked_ = at;
      if (closer.match == Match::no) {
        looked_ = at + 1;
        continue;
      }
    } else if (ahead.at_end) {
      closer.match = Match::yes;
      repaired_ = true;
    }
    const std::size_t line = at > 0 && held_[at - 1] == '\n' ? 1 : 0;
    take_value(at - line, out);
    if (closer.match != Match::yes) {
      looked_ = line;
      return false;
    }
    drop(line + closer.size);
    repaired_ = repaired_ || closer.size == 0;
    end_value(out);
    state_ = State::between;
    return true;
  }
}

CallBodyParser::Closer CallBodyParser::match_closer(const Lookahead& ahead, bool line_start) const {
  Match match = match_tag(ahead, kParameterClose);
  if (match == Match::yes) {
    match = closes_parameter(ahead.after(kParameterClose.size()), *tools_);
    return {match, kParameterClose.size()};
  }
  Match function = match_tag(ahead, kFunctionClose);
  if (function == Match::yes) {
    function = closes_function(ahead.after(kFunctionClose.size()), *tools_);
  }
  match = std::max(match, function);
  if (line_start) {
    Match call = match_tag(ahead, kCallClose);
    if (call == Match::yes) {
      call = closes_call(ahead.after(kCallClose.size()));
    }
    NamedTag parameter = match_named_tag(ahead, kParameterOpen);
    if (parameter.match == Match::yes && !is_new_parameter(parameter.name)) {
      parameter.match = Match::no;
    }
    match = std::max({match, call, parameter.match});
  }
  return {match, 0};
}

bool CallBodyParser::is_new_parameter(std::string_view key) const {
  return tool_ != nullptr && tool_->find(key) != nullptr &&
         std::ranges::find(keys_, key) == keys_.end();
}

bool CallBodyParser::step_after_function(const Lookahead& ahead) {
  const Lookahead next = ahead.after_space();
  const Match close = match_tag(next, kCallClose);
  if (close == Match::more) {
    return false;
  }
  if (close == Match::yes) {
    drop(held_.size() - next.text.size() + kCallClose.size());
  } else {
    repaired_ = repaired_ || wrapped_;
  }
  state_ = State::done;
  return false;
}

void CallBodyParser::take_value(std::size_t size, std::string& out) {
  if (kept_) {
    const std::string_view text = std::string_view(held_).substr(0, size);
    if (type_->is_text()) {
      append_json_escaped(out, text);
    } else {
      value_ += text;
    }
  }
  drop(size);
}

void CallBodyParser::end_value(std::string& out) {
  if (!kept_) {
    return;
  }
  if (type_->is_text()) {
    out += '"';
    return;
  }
  const CoercedValue value = coerce_value(*type_, value_);
  repaired_ = repaired_ || !value.fits;
  out += keys_.size() == 1 ? "{" : ", ";
  out += json_string(keys_.back()) + ": " + value.json;
}

void CallBodyParser::end_arguments(std::string& out) {
  out += keys_.empty() ? "{}" : "}";
}

void CallBodyParser::drop(std::size_t size) {
  if (size > 0) {
    previous_ = held_[size - 1];
    held_.erase(0, size);
  }
  looked_ = 0;
}

}  // namespace sluice
