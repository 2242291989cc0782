#include "api/answer/answer_parser.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

// The head of a call stays alone.
void add_delta(AnswerDelta delta, std::vector<AnswerDelta>& deltas) {
  if (deltas.empty() || deltas.back().call || !deltas.back().take(delta)) {
    deltas.push_back(std::move(delta));
  }
}

}  // namespace

bool AnswerDelta::take(AnswerDelta& more) {
  if (more.part != part || more.call) {
    return false;
  }
  text += more.text;
  std::move(more.tokens.begin(), more.tokens.end(), std::back_inserter(tokens));
  return true;
}

AnswerParser::AnswerParser(AnswerRules rules)
    : rules_(std::move(rules)),
      input_stops_(rules_.stop_everywhere ? rules_.stop : std::vector<std::string>{},
                   rules_.keep_stop_text),
      content_stops_(rules_.stop, rules_.keep_stop_text),
      splitter_(rules_.starts_inside_reasoning, rules_.tools) {}

std::vector<AnswerDelta> AnswerParser::append(const TokenEvent& token, std::string_view text) {
  std::vector<AnswerDelta> deltas;
  if (has_ended()) {
    return deltas;
  }
  ++token_count_;
  if (splitter_.inside_reasoning()) {
    maybe_reasoning_.push_back(input_size_);
  }
  input_tokens_.push_back(
      {token, input_size_, std::max(input_size_ + text.size(), input_size_ + 1)});
  input_size_ += text.size();
  if (token.token_id == rules_.call_token && text.ends_with(kCallOpen)) {
    // By its place: the end of it may be held back as the beginning of a stop text.
    splitter_.expect_own_token(input_size_ - kCallOpen.size());
  }
  take_segments(splitter_.append(input_stops_.append(text)), deltas);
  if (input_stops_.matched()) {
    take_segments(splitter_.finish(true), deltas);
  }
  count_reasoning(has_ended());
  if (stop_text()) {
    let_out_content(content_stops_.finish(), deltas);
    let_out_space(deltas);
  }
  return deltas;
}

std::vector<AnswerDelta> AnswerParser::finish(std::string_view tail, bool cut) {
  std::vector<AnswerDelta> deltas;
  if (has_ended()) {
    return deltas;
  }
  input_size_ += tail.size();
  std::string text = input_stops_.append(tail);
  text += input_stops_.finish();
  take_segments(splitter_.append(text), deltas);
  take_segments(splitter_.finish(cut), deltas);
  count_reasoning(true);
  if (!content_stops_.matched() && !has_only_call()) {
    let_out_content(content_stops_.finish(), deltas);
  }
  let_out_space(deltas);
  if (rules_.all_tokens && !has_ended() && !after_call_) {
    const bool reasoning = splitter_.inside_reasoning();
    AnswerDelta rest{reasoning ? AnswerPart::reasoning : AnswerPart::content, ""};
    for (PlacedToken& token : input_tokens_) {
      if (token.begin == input_size_) {  // else it is a tag, or space that was left out
        rest.tokens.push_back(std::move(token.event));
      }
    }
    input_tokens_.clear();
    if (!rest.tokens.empty()) {
      deltas.push_back(std::move(rest));
    }
  }
  return deltas;
}

const std::optional<std::string>& AnswerParser::stop_text() const {
  return content_stops_.matched() ? content_stops_.matched() : input_stops_.matched();
}

// A token belongs to the reasoning if its text begins there. Where none ended it, all of them do.
void AnswerParser::count_reasoning(bool at_end) {
  const bool all = at_end && splitter_.inside_reasoning();
  while (!maybe_reasoning_.empty() &&
         (all || maybe_reasoning_.front() < splitter_.reasoning_size())) {
    maybe_reasoning_.pop_front();
    ++reasoning_token_count_;
  }
  if (!splitter_.inside_reasoning()) {
    maybe_reasoning_.clear();
  }
}

void AnswerParser::take_segments(const std::vector<AnswerSegment>& segments,
                                 std::vector<AnswerDelta>& deltas) {
  for (const AnswerSegment& segment : segments) {
    if (content_stops_.matched() || has_only_call()) {
      return;
    }
    if (segment.part == AnswerPart::call) {
      take_call_segment(segment, deltas);
    } else {
      take_text_segment(segment, deltas);
    }
  }
}

void AnswerParser::take_text_segment(const AnswerSegment& segment,
                                     std::vector<AnswerDelta>& deltas) {
  const std::size_t end = segment.begin + segment.text.size();
  std::vector<TokenEvent> reasoning_tokens;
  while (!input_tokens_.empty() && input_tokens_.front().begin < end) {
    PlacedToken token = std::move(input_tokens_.front());
    input_tokens_.pop_front();
    if (token.end <= segment.begin) {
      continue;  // all of its text was a tag, a call or a trimmed newline
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
    add_delta({segment.part, segment.text, std::move(reasoning_tokens)}, deltas);
    return;
  }
  content_size_ += segment.text.size();
  let_out_content(content_stops_.append(segment.text), deltas);
}

void AnswerParser::take_call_segment(const AnswerSegment& segment,
                                     std::vector<AnswerDelta>& deltas) {
  if (segment.call_name) {
    let_out_content(content_stops_.finish(), deltas);
    drop_space();
    after_call_ = true;
    ++call_count_;
    call_ = {.head = {rules_.new_call_id(), *segment.call_name}, .arguments = {}, .token_ids = {}};
    deltas.push_back({.part = AnswerPart::call, .text = "", .call = call_.head});
  }
  if (!segment.text.empty()) {
    call_.arguments += segment.text;
    add_delta({AnswerPart::call, segment.text}, deltas);
  }
  if (segment.call_end) {
    ++complete_call_count_;
    repaired_call_count_ += segment.call_end->repaired ? 1 : 0;
    call_.token_ids = tokens_between(segment.begin, segment.call_end->input_end);
    call_.repaired = segment.call_end->repaired;
    finished_calls_.push_back(std::move(call_));
  }
}

// The tokens of exactly these input bytes, if they begin and end with the tags' own tokens.
std::vector<TokenId> AnswerParser::tokens_between(std::size_t begin, std::size_t end) const {
  std::vector<TokenId> ids;
  const PlacedToken* last = nullptr;
  for (const PlacedToken& token : input_tokens_) {
    if (token.begin >= begin && token.begin < end) {
      const bool opens = token.begin == begin && token.event.token_id == rules_.call_token;
      if (last == nullptr && !opens) {
        return {};
      }
      ids.push_back(token.event.token_id);
      last = &token;
    }
  }
  const bool closes =
      last != nullptr && last->end == end && last->end - last->begin == kCallClose.size();
  return closes ? ids : std::vector<TokenId>{};
}

void AnswerParser::let_out_content(std::string text, std::vector<AnswerDelta>& deltas) {
  if (rules_.tools != nullptr) {
    text.insert(0, std::exchange(space_, {}));
    const std::size_t last = text.find_last_not_of(" \t\r\n");
    const std::size_t size = last == std::string::npos ? 0 : last + 1;
    space_ = text.substr(size);
    text.resize(size);
    if (after_call_ && !has_content_ && size > 0) {
      const std::size_t begin = text.find_first_not_of(" \t\r\n");
      content_out_size_ += begin;
      text.erase(0, begin);
      take_content_tokens();
    }
  }
  if (text.empty()) {
    return;
  }
  content_out_size_ += text.size();
  after_call_ = false;
  has_content_ = true;
  add_delta({AnswerPart::content, std::move(text), take_content_tokens()}, deltas);
}

// At the end: space behind content belongs to it, space behind a call to nothing.
void AnswerParser::let_out_space(std::vector<AnswerDelta>& deltas) {
  if (after_call_ || space_.empty()) {
    drop_space();
    return;
  }
  content_out_size_ += space_.size();
  add_delta({AnswerPart::content, std::exchange(space_, {}), take_content_tokens()}, deltas);
}

void AnswerParser::drop_space() {
  content_out_size_ += space_.size();
  space_.clear();
  take_content_tokens();
}

// Those whose text begins in what was let out.
std::vector<TokenEvent> AnswerParser::take_content_tokens() {
  std::vector<TokenEvent> tokens;
  while (!content_tokens_.empty() && content_tokens_.front().begin < content_out_size_) {
    tokens.push_back(std::move(content_tokens_.front().event));
    content_tokens_.pop_front();
  }
  return tokens;
}

}  // namespace sluice
