// Every step looks at the front of held_ and either consumes some of it or asks for more text. A
// step asks for more whenever a longer held_ could change what it does: that makes the result
// independent of the split.
#include "api/answer/answer_splitter.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

constexpr std::string_view kThinkOpen = "<think>";
constexpr std::string_view kThinkClose = "</think>";
constexpr int kGapNewlines = 2;  // the template writes "</think>\n\n" before content
constexpr std::size_t kUnknownCallBytesMax = std::size_t{64} << 10;

}  // namespace

AnswerSplitter::AnswerSplitter(bool starts_inside_reasoning, std::shared_ptr<const ToolSet> tools)
    : tools_(std::move(tools)),
      state_(starts_inside_reasoning ? State::newline : State::content),
      drops_close_tags_(starts_inside_reasoning) {}

std::vector<AnswerSegment> AnswerSplitter::append(std::string_view text) {
  std::vector<AnswerSegment> segments;
  held_ += text;
  advance(false, segments);
  return segments;
}

std::vector<AnswerSegment> AnswerSplitter::finish(bool cut) {
  std::vector<AnswerSegment> segments;
  cut_ = cut;
  advance(true, segments);
  return segments;
}

void AnswerSplitter::advance(bool at_end, std::vector<AnswerSegment>& segments) {
  bool moved = true;
  while (moved && (!held_.empty() || (at_end && state_ == State::call))) {
    switch (state_) {
      case State::newline:
      case State::tag:
      case State::tag_newline:
        moved = skip_opening(at_end);
        break;
      case State::gap:
        moved = skip_gap();
        break;
      case State::reasoning:
      case State::content:
        moved = take_region(at_end, segments);
        break;
      case State::call:
        moved = take_call(at_end, segments);
        break;
    }
  }
}

bool AnswerSplitter::skip_opening(bool at_end) {
  if (state_ == State::tag) {
    const Match open = match_tag({held_, at_end}, kThinkOpen);
    if (open == Match::more) {
      return false;
    }
    drop(open == Match::yes ? kThinkOpen.size() : 0);
    state_ = open == Match::yes ? State::tag_newline : State::reasoning;
    return true;
  }
  if (held_.front() == '\n') {
    drop(1);
  }
  state_ = state_ == State::newline ? State::tag : State::reasoning;
  return true;
}

bool AnswerSplitter::skip_gap() {
  if (gap_newlines_ > 0 && held_.front() == '\n') {
    --gap_newlines_;
    drop(1);
  } else {
    state_ = State::content;
  }
  return true;
}

// Text of the current part, up to the next tag that means something.
bool AnswerSplitter::take_region(bool at_end, std::vector<AnswerSegment>& segments) {
  const bool reasoning = state_ == State::reasoning;
  const AnswerPart part = reasoning ? AnswerPart::reasoning : AnswerPart::content;
  while (true) {
    const std::size_t at = std::min(held_.find('<', looked_), held_.size());
    lines_.append(std::string_view(held_).substr(looked_, at - looked_));
    after_call_ = after_call_ && held_.find_first_not_of(" \t\r\n", looked_) >= at;
    looked_ = at;
    // A newline before a tag belongs to neither part of reasoning.
    const std::size_t line = reasoning && at > 0 && held_[at - 1] == '\n' ? 1 : 0;
    if (at == held_.size()) {
      emit(part, at - line, segments);
      if (at_end) {
        drop(held_.size());
      }
      return false;
    }
    const Lookahead ahead = Lookahead{held_, at_end}.after(at);
    const Match close = reasoning || drops_close_tags_ ? match_tag(ahead, kThinkClose) : Match::no;
    if (close == Match::yes) {
      emit(part, at - line, segments);
      drop(line + kThinkClose.size());
      if (reasoning) {
        end_reasoning();
      }
      return true;
    }
    const Opener opener = tools_ != nullptr ? find_opener(ahead) : Opener{};
    if (opener.match == Match::yes) {
      emit(part, at - line, segments);
      drop(line);
      open_call(opener, segments);
      return true;
    }
    if (std::max(close, opener.match) == Match::more) {
      emit(part, at - line, segments);
      return false;
    }
    literal_call_count_ += opener.refused ? 1 : 0;
    lines_.append("<");
    after_call_ = false;
    looked_ = at + 1;
  }
}

AnswerSplitter::Opener AnswerSplitter::find_opener(const Lookahead& ahead) {
  const bool fenced = tools_->fence_guard && lines_.inside_fence();
  if (state_ == State::content && !fenced && (lines_.at_line_start() || after_call_)) {
    const NamedTag tag = match_named_tag(ahead, kFunctionOpen);
    if (tag.match == Match::more) {
      return {.match = Match::more};
    }
    if (tag.match == Match::yes && tools_->find(tag.name) != nullptr) {
      return {.match = Match::yes, .size = tag.size, .name = std::string(tag.name)};
    }
  }
  const std::size_t position = held_begin_ + (held_.size() - ahead.text.size());
  while (!own_tokens_.empty() && own_tokens_.front() < position) {
    own_tokens_.pop_front();
  }
  const bool own = !own_tokens_.empty() && own_tokens_.front() == position;
  const bool spelled = (lines_.at_line_start() || after_call_) && !fenced;
  if (!own && !spelled) {
    return {};
  }
  Opener opener = find_wrapped_opener(ahead);
  opener.refused = opener.match == Match::no && match_tag(ahead, kCallOpen) == Match::yes;
  return opener;
}

AnswerSplitter::Opener AnswerSplitter::find_wrapped_opener(const Lookahead& ahead) {
  const Match open = match_tag(ahead, kCallOpen);
  if (open != Match::yes) {
    return {.match = open};
  }
  const Lookahead next = ahead.after(kCallOpen.size()).after_space();
  if (next.text.empty()) {
    return {.match = next.at_end ? Match::no : Match::more};
  }
  const std::size_t head_size = ahead.text.size() - next.text.size();
  const bool fenced = tools_->fence_guard && lines_.inside_fence();
  if (next.text.front() == '{') {
    return fenced ? Opener{} : try_json_call(next, head_size);
  }
  const NamedTag tag = match_named_tag(next, kFunctionOpen);
  if (tag.match != Match::yes) {
    return {.match = tag.match};
  }
  if (tools_->find(tag.name) == nullptr) {
    return try_unknown_call(next, tag, head_size);
  }
  return {.match = Match::yes,
          .size = head_size + tag.size,
          .name = std::string(tag.name),
          .wrapped = true};
}

AnswerSplitter::Opener AnswerSplitter::try_unknown_call(const Lookahead& ahead, const NamedTag& tag,
                                                        std::size_t head_size) {
  const std::size_t ahead_begin = held_begin_ + held_.size() - ahead.text.size();
  if (!unknown_call_) {
    unknown_call_.emplace(CallBodyParser(*tools_, nullptr, true), ahead_begin + tag.size, "");
  }
  Trial& trial = *unknown_call_;
  const std::size_t fed = trial.fed - ahead_begin;
  const std::size_t room = kUnknownCallBytesMax - std::min(kUnknownCallBytesMax, fed);
  const std::string_view text = ahead.text.substr(fed, room);
  trial.arguments += trial.body.append(text);
  trial.fed += text.size();
  const bool perfect = !trial.body.was_repaired();
  if (trial.body.is_done() && perfect) {
    Opener opener{.match = Match::yes, .name = std::string(tag.name), .wrapped = true};
    opener.size = head_size + (trial.fed - trial.body.rest().size() - ahead_begin);
    opener.arguments = std::move(trial.arguments);
    opener.closed = true;
    unknown_call_.reset();
    return opener;
  }
  const bool full = fed + text.size() >= kUnknownCallBytesMax;
  if (perfect && !trial.body.is_done() && !full && !ahead.at_end) {
    return {.match = Match::more};
  }
  unknown_call_.reset();
  return {};
}

AnswerSplitter::Opener AnswerSplitter::try_json_call(const Lookahead& ahead,
                                                     std::size_t head_size) {
  if (!json_end_) {
    json_end_.emplace();
  }
  const auto size = json_end_->find(ahead.text);
  if (!size && !ahead.at_end) {
    return {.match = Match::more};
  }
  json_end_.reset();
  const auto call = size ? read_json_call(ahead.text.substr(0, *size), *tools_) : std::nullopt;
  if (!call) {
    return {};
  }
  return {.match = Match::yes,
          .size = head_size + *size,
          .name = call->name,
          .wrapped = true,
          .arguments = call->arguments};
}

// The opener is the front of held_.
void AnswerSplitter::open_call(const Opener& opener, std::vector<AnswerSegment>& segments) {
  if (state_ == State::reasoning) {
    end_reasoning();
  }
  call_begin_ = held_begin_;
  segments.push_back({.part = AnswerPart::call, .begin = call_begin_, .call_name = opener.name});
  drop(opener.size);
  if (opener.arguments) {
    segments.push_back({.part = AnswerPart::call, .begin = call_begin_, .text = *opener.arguments});
  }
  if (opener.closed) {
    end_call(false, segments.back());
    return;
  }
  if (opener.arguments) {
    body_ = CallBodyParser::after_arguments(*tools_);
  } else {
    body_.emplace(*tools_, tools_->find(opener.name), opener.wrapped);
  }
  state_ = State::call;
}

bool AnswerSplitter::take_call(bool at_end, std::vector<AnswerSegment>& segments) {
  std::string text = body_->append(held_);
  drop(held_.size());
  if (at_end && !cut_) {
    text += body_->finish();
  }
  const bool done = body_->is_done();
  if (!text.empty() || done) {
    segments.push_back({.part = AnswerPart::call, .begin = call_begin_, .text = std::move(text)});
  }
  if (!done) {
    return false;
  }
  held_ = body_->rest();
  held_begin_ -= held_.size();
  end_call(body_->was_repaired(), segments.back());
  body_.reset();
  return true;
}

void AnswerSplitter::end_call(bool repaired, AnswerSegment& last) {
  last.call_end = {.input_end = held_begin_, .repaired = repaired};
  state_ = State::content;
  lines_ = {};
  after_call_ = true;
}

void AnswerSplitter::end_reasoning() {
  reasoning_size_ = held_begin_;
  state_ = State::gap;
  gap_newlines_ = kGapNewlines;
  lines_ = {};
}

void AnswerSplitter::emit(AnswerPart part, std::size_t size, std::vector<AnswerSegment>& segments) {
  if (size > 0) {
    segments.push_back({.part = part, .begin = held_begin_, .text = held_.substr(0, size)});
    drop(size);
  }
}

void AnswerSplitter::drop(std::size_t size) {
  held_.erase(0, size);
  held_begin_ += size;
  looked_ -= std::min(looked_, size);
}

}  // namespace sluice
