// Everything a request may demand of the tokens of its answer, as one TokenConstraint:
//
//   [ reasoning ........... | closing sentence  </think> ] [ gap | content ..................... ]
//     at most its budget      forced when it is spent        forced   follows the grammar
//
//   a call that it makes (call_watch.h): follows the grammar of calls, wherever it begins
//   words it must not contain, the only ids it may use, no end before so many tokens: everywhere.
//
// A grammar begins after the reasoning and never touches it, but for this: where a grammar asks for
// content the answer cannot end inside its reasoning, a token cannot be half closing tag and half
// content, and the last tokens of a budget do not leave half a character behind. Forced tokens take
// precedence over everything else.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "request/token_constraint.h"
#include "text/grammar_cache.h"
#include "text/thinking_tokens.h"
#include "text/tokenizer.h"

namespace sluice {

struct AnswerConstraintOptions {
  bool starts_inside_reasoning = false;
  std::int64_t reasoning_tokens_max = -1;  // -1: no limit
  std::shared_ptr<const CompiledGrammar> grammar = nullptr;
  // Opens a tool call, also where the grammar wants content: calls may stand for it.
  std::optional<TokenId> call_token = std::nullopt;
  std::optional<TokenId> call_end_token = std::nullopt;  // closes it
  // Of one or more calls, from call_token on; null: a call is free.
  std::shared_ptr<const CompiledGrammar> calls = nullptr;
  // The grammar itself says where calls stand: then none can come elsewhere, and reasoning, where
  // one would count, cannot have call_token.
  bool grammar_has_calls = false;
  std::int64_t tokens_min = 0;  // before that many no stop id may come, unless nothing else can
  std::vector<TokenId> stop_ids = {};                // the model's and the request's
  std::vector<std::vector<TokenId>> bad_words = {};  // sequences that must not occur, none empty
  std::vector<TokenId> allowed_ids = {};             // empty: all

  // Whether there is anything to keep to.
  bool constrains() const {
    return reasoning_tokens_max >= 0 || grammar != nullptr || calls != nullptr || tokens_min > 0 ||
           !bad_words.empty() || !allowed_ids.empty();
  }
};

// tokenizer must outlive the constraints.
std::shared_ptr<const ConstraintFactory> make_answer_constraint(
    AnswerConstraintOptions options, const Tokenizer& tokenizer,
    std::shared_ptr<const ThinkingTokens> thinking);

}  // namespace sluice
