#include "text/middle_tokens.h"

namespace sluice {

std::optional<MiddleTokens> MiddleTokens::of(const Tokenizer& tokenizer) {
  const auto prefix = tokenizer.token_id("<|fim_prefix|>");
  const auto suffix = tokenizer.token_id("<|fim_suffix|>");
  const auto middle = tokenizer.token_id("<|fim_middle|>");
  if (!prefix || !suffix || !middle) {
    return std::nullopt;
  }
  MiddleTokens tokens{
      .prefix = *prefix, .suffix = *suffix, .middle = *middle, .ends = {*prefix, *suffix, *middle}};
  for (const char* name : {"<|fim_pad|>", "<|file_sep|>", "<|repo_name|>", "<|endoftext|>"}) {
    if (const auto id = tokenizer.token_id(name)) {
      tokens.ends.push_back(*id);
    }
  }
  return tokens;
}

}  // namespace sluice
