#include "api/answer_parser.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

void add_delta(AnswerPart part, std::string text, std::vector<TokenEvent> tokens,
               std::vector<AnswerDelta>& deltas) {
  if (deltas.empty() || deltas.back().part != part) {
    deltas.push_back({.part = part, .text = std::move(text), .tokens = std::move(tokens)});
    return;
  }
  deltas.back().text += text;
  std::move(tokens.begin(), tokens.end(), std::back_inserter(deltas.back().tokens));
}

std::vector<std::string> stops_if(bool wanted, const AnswerRules& rules) {
  return wanted ? rules.stop : std::vector<std::string>{};
}

}  // namespace

AnswerParser::AnswerParser(AnswerRules rules)
    : input_stops_(stops_if(rules.stop_everywhere, rules), rules.keep_stop_text),
      content_stops_(stops_if(!rules.stop_everywhere, rules), rules.keep_stop_text),
      reasoning_(rules.starts_inside_reasoning) {}

std::vector<AnswerDelta> AnswerParser::append(const TokenEvent& token, std::string_view text) {
  std::vector<AnswerDelta> deltas;
  if (stop_text()) {
    return deltas;
  }
  ++token_count_;
  if (reasoning_.inside_reasoning()) {
    ++reasoning_token_count_;
  }
  input_tokens_.push_back(
      {token, input_size_, std::max(input_size_ + text.size(), input_size_ + 1)});
  input_size_ += text.size();
  take_text(input_stops_.append(text), input_stops_.matched().has_value(), deltas);
  return deltas;
}

std::vector<AnswerDelta> AnswerParser::finish(std::string_view tail) {
  std::vector<AnswerDelta> deltas;
  if (stop_text()) {
    return deltas;
  }
  input_size_ += tail.size();
  std::string text = input_stops_.append(tail);
  text += input_stops_.finish();
  take_text(text, true, deltas);
  return deltas;
}

const std::optional<std::string>& AnswerParser::stop_text() const {
  return input_stops_.matched() ? input_stops_.matched() : content_stops_.matched();
}

void AnswerParser::take_text(std::string_view text, bool at_end, std::vector<AnswerDelta>& deltas) {
  for (const AnswerSegment& segment : reasoning_.append(text)) {
    take_segment(segment, deltas);
  }
  if (!at_end) {
    return;
  }
  for (const AnswerSegment& segment : reasoning_.finish()) {
    take_segment(segment, deltas);
  }
  let_out_content(content_stops_.finish(), deltas);
}

void AnswerParser::take_segment(const AnswerSegment& segment, std::vector<AnswerDelta>& deltas) {
  const std::size_t end = segment.begin + segment.text.size();
  std::vector<TokenEvent> reasoning_tokens;
  while (!input_tokens_.empty() && input_tokens_.front().begin < end) {
    PlacedToken token = std::move(input_tokens_.front());
    input_tokens_.pop_front();
    if (token.end <= segment.begin) {
      continue;  // all of its text was a tag or a trimmed newline
    }
    if (segment.part == AnswerPart::reasoning) {
      reasoning_tokens.push_back(std::move(token.event));
    } else {
      const std::size_t skipped = std::max(token.begin, segment.begin) - segment.begin;
      token.begin = content_size_ + skipped;
      content_tokens_.push_back(std::move(token));
    }
  }
  if (segment.part == AnswerPart::reasoning) {
    add_delta(segment.part, segment.text, std::move(reasoning_tokens), deltas);
    return;
  }
  content_size_ += segment.text.size();
  let_out_content(content_stops_.append(segment.text), deltas);
}

void AnswerParser::let_out_content(std::string text, std::vector<AnswerDelta>& deltas) {
  if (text.empty()) {
    return;
  }
  content_out_size_ += text.size();
  std::vector<TokenEvent> tokens;
  while (!content_tokens_.empty() && content_tokens_.front().begin < content_out_size_) {
    tokens.push_back(std::move(content_tokens_.front().event));
    content_tokens_.pop_front();
  }
  add_delta(AnswerPart::content, std::move(text), std::move(tokens), deltas);
}

}  // namespace sluice
