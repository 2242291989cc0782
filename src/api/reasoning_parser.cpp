// Every step looks at the front of held_ and either consumes some of it or asks for more text. A
// step asks for more whenever a longer held_ could change what it does: that makes the result
// independent of the split.
#include "api/reasoning_parser.h"

#include <algorithm>

#include "api/stop_matcher.h"

namespace sluice {
namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";
constexpr std::string_view kCloseLine = "\n</think>";
constexpr int kGapNewlines = 2;  // the template writes "</think>\n\n" before content

}  // namespace

ReasoningParser::ReasoningParser(bool starts_inside_reasoning)
    : state_(starts_inside_reasoning ? State::newline : State::literal) {}

std::vector<AnswerSegment> ReasoningParser::append(std::string_view text) {
  std::vector<AnswerSegment> segments;
  held_ += text;
  advance(false, segments);
  return segments;
}

std::vector<AnswerSegment> ReasoningParser::finish() {
  std::vector<AnswerSegment> segments;
  advance(true, segments);
  return segments;
}

void ReasoningParser::advance(bool at_end, std::vector<AnswerSegment>& segments) {
  bool moved = true;
  while (moved && !held_.empty()) {
    switch (state_) {
      case State::newline:
      case State::tag:
      case State::tag_newline:
        moved = skip_opening(at_end);
        break;
      case State::reasoning:
        moved = take_reasoning(at_end, segments);
        break;
      case State::gap:
        moved = skip_gap();
        break;
      case State::content:
        moved = take_content(at_end, segments);
        break;
      case State::literal:
        emit(AnswerPart::content, held_.size(), segments);
        break;
    }
  }
}

bool ReasoningParser::skip_opening(bool at_end) {
  if (state_ == State::tag) {
    if (held_.starts_with(kOpen)) {
      drop(kOpen.size());
      state_ = State::tag_newline;
      return true;
    }
    if (!at_end && kOpen.starts_with(held_)) {
      return false;
    }
    state_ = State::reasoning;
    return true;
  }
  if (held_.front() == '\n') {
    drop(1);
  }
  state_ = state_ == State::newline ? State::tag : State::reasoning;
  return true;
}

bool ReasoningParser::take_reasoning(bool at_end, std::vector<AnswerSegment>& segments) {
  const std::size_t close = held_.find(kClose);
  if (close != std::string::npos) {
    const bool line = close > 0 && held_[close - 1] == '\n';
    emit(AnswerPart::reasoning, line ? close - 1 : close, segments);
    drop(kClose.size() + (line ? 1 : 0));
    state_ = State::gap;
    gap_newlines_ = kGapNewlines;
    return true;
  }
  if (at_end) {
    const bool line = held_.ends_with('\n');
    emit(AnswerPart::reasoning, held_.size() - (line ? 1 : 0), segments);
    drop(held_.size());
    return true;
  }
  const std::size_t keep =
      std::max(partial_match_size(held_, kClose), partial_match_size(held_, kCloseLine));
  emit(AnswerPart::reasoning, held_.size() - keep, segments);
  return false;
}

bool ReasoningParser::skip_gap() {
  if (gap_newlines_ > 0 && held_.front() == '\n') {
    --gap_newlines_;
    drop(1);
  } else {
    state_ = State::content;
  }
  return true;
}

bool ReasoningParser::take_content(bool at_end, std::vector<AnswerSegment>& segments) {
  const std::size_t close = held_.find(kClose);
  if (close != std::string::npos) {
    emit(AnswerPart::content, close, segments);
    drop(kClose.size());
    return true;
  }
  const std::size_t keep = at_end ? 0 : partial_match_size(held_, kClose);
  emit(AnswerPart::content, held_.size() - keep, segments);
  return false;
}

void ReasoningParser::emit(AnswerPart part, std::size_t size,
                           std::vector<AnswerSegment>& segments) {
  if (size > 0) {
    segments.push_back({part, held_begin_, held_.substr(0, size)});
    drop(size);
  }
}

void ReasoningParser::drop(std::size_t size) {
  held_.erase(0, size);
  held_begin_ += size;
}

}  // namespace sluice
