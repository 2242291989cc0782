#include "text/answer_constraint.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "text/call_watch.h"

namespace sluice {
namespace {

using Mask = std::span<std::uint32_t>;

constexpr std::int64_t kCharacterTokensMax = 3;  // that may follow the first one of a character

bool has(std::span<const std::uint32_t> mask, TokenId id) {
  const auto word = static_cast<std::size_t>(id) / 32;
  return word < mask.size() && ((mask[word] >> (id % 32)) & 1U) != 0;
}

void clear(Mask mask, TokenId id) {
  if (const auto word = static_cast<std::size_t>(id) / 32; word < mask.size()) {
    mask[word] &= ~(std::uint32_t{1} << (id % 32));
  }
}

void set(Mask mask, TokenId id) {
  if (const auto word = static_cast<std::size_t>(id) / 32; word < mask.size()) {
    mask[word] |= std::uint32_t{1} << (id % 32);
  }
}

// Keeps what is in both; words beyond the end of `other` are empty.
void intersect(Mask mask, std::span<const std::uint32_t> other) {
  for (std::size_t i = 0; i < mask.size(); ++i) {
    mask[i] &= i < other.size() ? other[i] : 0;
  }
}

// Removes what is in `other`, unless that would leave nothing.
void subtract_if_any_left(Mask mask, std::span<const TokenId> ids) {
  std::vector<TokenId> removed;
  for (const TokenId id : ids) {
    if (has(mask, id)) {
      removed.push_back(id);
      clear(mask, id);
    }
  }
  if (std::ranges::all_of(mask, [](std::uint32_t word) { return word == 0; })) {
    for (const TokenId id : removed) {
      set(mask, id);
    }
  }
}

std::size_t words_of(std::int32_t vocab_size) {
  return (static_cast<std::size_t>(vocab_size) + 31) / 32;
}

// What all sequences of a request share.
struct Shared {
  AnswerConstraintOptions options;
  const Tokenizer& tokenizer;
  std::shared_ptr<const ThinkingTokens> thinking;
  std::vector<std::uint32_t> allowed_mask = {};  // of options.allowed_ids
  std::size_t history_max = 0;                   // tokens that bad words need to see
};

class AnswerConstraint final : public TokenConstraint {
 public:
  AnswerConstraint(std::shared_ptr<const Shared> shared, std::optional<GrammarMatcher> matcher);

  Result<bool> narrow(Mask allowed) override;
  Result<void> accept(TokenId token) override;
  Result<bool> is_finished() override;

 private:
  bool narrow_reasoning(Mask allowed) const;
  bool clear_bad_words(Mask allowed) const;
  void accept_reasoning(TokenId token);
  Result<bool> accept_call(TokenId token);
  Result<void> open_call(TokenId token);
  void force(std::span<const TokenId> tokens);

  const AnswerConstraintOptions& options() const { return shared_->options; }
  bool may_call() const { return options().call_token && !options().grammar_has_calls; }

  std::shared_ptr<const Shared> shared_;
  std::optional<GrammarMatcher> matcher_;
  CallWatch call_;
  std::vector<std::uint32_t> grammar_mask_;  // scratch
  bool inside_reasoning_;
  bool content_begun_ = false;
  std::string reasoning_tail_;   // as much as a tag spelled in ordinary tokens needs
  std::deque<TokenId> forced_;   // what must come next
  std::deque<TokenId> history_;  // the last history_max tokens
  std::int64_t token_count_ = 0;
};

AnswerConstraint::AnswerConstraint(std::shared_ptr<const Shared> shared,
                                   std::optional<GrammarMatcher> matcher)
    : shared_(std::move(shared)),
      matcher_(std::move(matcher)),
      grammar_mask_(words_of(shared_->tokenizer.vocab_size())),
      inside_reasoning_(options().starts_inside_reasoning) {
  if (inside_reasoning_ && options().reasoning_tokens_max == 0) {
    inside_reasoning_ = false;
    force(shared_->thinking->closing);
    force(shared_->thinking->gap);
  }
}

Result<bool> AnswerConstraint::narrow(Mask allowed) {
  if (!forced_.empty()) {
    std::ranges::fill(allowed, 0);
    set(allowed, forced_.front());
    return true;
  }
  bool narrowed = false;
  if (call_.inside()) {
    SLUICE_TRY(call_.allowed_mask(grammar_mask_));
    intersect(allowed, grammar_mask_);
    narrowed = true;
  } else if (inside_reasoning_) {
    narrowed = narrow_reasoning(allowed);
  } else if (matcher_) {
    SLUICE_TRY(matcher_->allowed_mask(grammar_mask_));
    if (!content_begun_ && may_call()) {
      set(grammar_mask_, *options().call_token);
    }
    intersect(allowed, grammar_mask_);
    narrowed = true;
  }
  if (!shared_->allowed_mask.empty()) {
    intersect(allowed, shared_->allowed_mask);
    narrowed = true;
  }
  narrowed = clear_bad_words(allowed) || narrowed;
  if (token_count_ < options().tokens_min) {
    subtract_if_any_left(allowed, options().stop_ids);
    narrowed = true;
  }
  return narrowed;
}

bool AnswerConstraint::narrow_reasoning(Mask allowed) const {
  bool narrowed = false;
  if (matcher_) {
    for (const TokenId id : options().stop_ids) {
      clear(allowed, id);
    }
    if (options().grammar_has_calls && options().call_token) {
      clear(allowed, *options().call_token);
    }
    for (const TagOverrun& overrun : shared_->thinking->tag_overruns) {
      if (reasoning_tail_.ends_with(kThinkingCloseTag.substr(0, overrun.tag_bytes_before))) {
        clear(allowed, overrun.id);
      }
    }
    narrowed = true;
  }
  const std::int64_t left = options().reasoning_tokens_max - token_count_;
  if (options().reasoning_tokens_max >= 0 && left <= kCharacterTokensMax) {
    const std::vector<std::uint32_t>& cut = shared_->thinking->cut_characters;
    for (std::size_t i = 0; i < std::min(allowed.size(), cut.size()); ++i) {
      allowed[i] &= ~cut[i];
    }
    narrowed = true;
  }
  return narrowed;
}

// The last token of a word must not come after the others.
bool AnswerConstraint::clear_bad_words(Mask allowed) const {
  bool narrowed = false;
  for (const std::vector<TokenId>& word : options().bad_words) {
    const std::size_t before = word.size() - 1;
    if (before <= history_.size() &&
        std::equal(word.begin(), word.end() - 1,
                   history_.end() - static_cast<std::ptrdiff_t>(before), history_.end())) {
      clear(allowed, word.back());
      narrowed = true;
    }
  }
  return narrowed;
}

Result<void> AnswerConstraint::accept(TokenId token) {
  ++token_count_;
  if (shared_->history_max > 0) {
    history_.push_back(token);
    if (history_.size() > shared_->history_max) {
      history_.pop_front();
    }
  }
  if (!forced_.empty()) {
    forced_.pop_front();
    return {};
  }
  if (SLUICE_TRY(accept_call(token))) {
    return {};
  }
  if (inside_reasoning_) {
    accept_reasoning(token);
  } else if (matcher_) {
    content_begun_ = true;
    return matcher_->accept(token);
  }
  return {};
}

// Whether the token belongs to a call, or begins one.
Result<bool> AnswerConstraint::accept_call(TokenId token) {
  if (call_.inside()) {
    SLUICE_TRY(call_.accept(token));
    if (token == options().call_end_token) {
      call_.close();
    }
    return true;
  }
  if (call_.watching()) {
    const auto verdict = SLUICE_TRY(call_.watch(token, shared_->tokenizer.token_bytes(token)));
    if (verdict == CallWatch::Verdict::call) {
      inside_reasoning_ = false;
      if (matcher_) {  // calls stand for the content
        matcher_ = call_.take_matcher();
        content_begun_ = true;
      }
      return true;
    }
    if (verdict == CallWatch::Verdict::other_form && matcher_) {
      inside_reasoning_ = false;
      matcher_.reset();
      return true;
    }
  }
  if (!may_call() || content_begun_ || token != options().call_token) {
    return false;
  }
  SLUICE_TRY(open_call(token));
  return !inside_reasoning_ && !call_.watching();
}

// The model's own <tool_call>.
Result<void> AnswerConstraint::open_call(TokenId token) {
  if (options().calls == nullptr) {
    inside_reasoning_ = false;
    matcher_.reset();
  } else if (!inside_reasoning_ && matcher_) {  // nothing else could have begun with it
    matcher_ = SLUICE_TRY(options().calls->start());
    content_begun_ = true;
    SLUICE_TRY(matcher_->accept(token));
  } else {
    SLUICE_TRY(call_.open(*options().calls, token));
  }
  return {};
}

void AnswerConstraint::accept_reasoning(TokenId token) {
  const ThinkingTokens& thinking = *shared_->thinking;
  reasoning_tail_ += shared_->tokenizer.token_bytes(token);
  if (token == thinking.close_tag || reasoning_tail_.find(kThinkingCloseTag) != std::string::npos) {
    inside_reasoning_ = false;
    if (matcher_) {
      force(thinking.gap);  // the model would write it, the grammar does not know it
    }
    return;
  }
  if (reasoning_tail_.size() >= kThinkingCloseTag.size()) {
    reasoning_tail_.erase(0, reasoning_tail_.size() - (kThinkingCloseTag.size() - 1));
  }
  if (token_count_ == options().reasoning_tokens_max) {
    inside_reasoning_ = false;
    call_.close();
    force(thinking.closing);
    force(thinking.gap);
  }
}

void AnswerConstraint::force(std::span<const TokenId> tokens) {
  forced_.insert(forced_.end(), tokens.begin(), tokens.end());
}

Result<bool> AnswerConstraint::is_finished() {
  if (inside_reasoning_ || !forced_.empty() || !matcher_) {
    return false;
  }
  return matcher_->is_finished();
}

class AnswerConstraintFactory final : public ConstraintFactory {
 public:
  explicit AnswerConstraintFactory(std::shared_ptr<const Shared> shared)
      : shared_(std::move(shared)) {}

  Result<std::unique_ptr<TokenConstraint>> start() const override {
    std::optional<GrammarMatcher> matcher;
    if (shared_->options.grammar != nullptr) {
      matcher = SLUICE_TRY(shared_->options.grammar->start());
    }
    return std::make_unique<AnswerConstraint>(shared_, std::move(matcher));
  }

 private:
  std::shared_ptr<const Shared> shared_;
};

}  // namespace

std::shared_ptr<const ConstraintFactory> make_answer_constraint(
    AnswerConstraintOptions options, const Tokenizer& tokenizer,
    std::shared_ptr<const ThinkingTokens> thinking) {
  auto shared = std::make_shared<Shared>(std::move(options), tokenizer, std::move(thinking));
  if (!shared->options.allowed_ids.empty()) {
    shared->allowed_mask.resize(words_of(tokenizer.vocab_size()));
    for (const TokenId id : shared->options.allowed_ids) {
      set(shared->allowed_mask, id);
    }
  }
  for (const std::vector<TokenId>& word : shared->options.bad_words) {
    shared->history_max = std::max(shared->history_max, word.size() - 1);
  }
  return std::make_shared<AnswerConstraintFactory>(std::move(shared));
}

}  // namespace sluice
