// The tool calls an answer makes of its own accord: nothing is asked of a token until a call has
// begun, then the call keeps to a grammar.
//
//   ... <tool_call> \n <function   =read> ... </tool_call> ...
//   free  watching ..............  inside ...............   free
//
// The model's own <tool_call> alone is no call yet: a model may speak of it, in its reasoning above
// all. What follows decides, and until then the grammar follows without having a say.
// Thread rule: one owner.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/grammar_cache.h"

namespace sluice {

class CallWatch {
 public:
  enum class Verdict {
    undecided,
    call,        // inside from now on
    other_form,  // JSON instead of tags: perhaps a call, but none this grammar knows
    no_call,
  };

  bool watching() const { return matcher_.has_value() && !inside_; }
  bool inside() const { return inside_; }

  // The token <tool_call> came. `calls`: the grammar from this token on.
  Result<void> open(const CompiledGrammar& calls, std::int32_t call_token);

  // The next token, `bytes` are its text. While watching.
  Result<Verdict> watch(std::int32_t token, std::string_view bytes);

  // While inside: what may come next, and what came.
  Result<void> allowed_mask(std::span<std::uint32_t> mask) { return matcher_->allowed_mask(mask); }
  Result<void> accept(std::int32_t token) { return matcher_->accept(token); }

  // No call, or no more.
  void close();

  // The grammar at this point, for an answer that shall have nothing but calls from here on.
  std::optional<GrammarMatcher> take_matcher();

 private:
  std::optional<GrammarMatcher> matcher_;
  bool inside_ = false;
  std::string opening_;  // the text after <tool_call>, without white space before it
};

}  // namespace sluice
