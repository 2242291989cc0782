// Constrained decoding (llguidance): which tokens may come next so that the text follows a JSON
// Schema, a regular expression or a Lark grammar.
//
// Control tokens never match text of a grammar, so a constrained JSON string cannot contain
// <tool_call> or <|im_end|> as tokens; a Lark grammar may name them (`<think>` outside quotes).
//
// Thread rule: one owner. create() may be called from any thread; the first grammar of a tokenizer
// builds tables over the vocabulary (about a second for 250,000 tokens), the others share them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "text/tokenizer.h"

struct sluice_grammar;  // C ABI of the Rust crate

namespace sluice {

enum class GrammarKind { json_schema, regex, lark };

struct GrammarSource {
  GrammarKind kind = GrammarKind::json_schema;
  std::string_view text;
};

class GrammarMatcher {
 public:
  struct Options {
    // Bits of the mask: at least tokenizer.vocab_size(), more when the embedding is padded.
    std::int32_t vocab_size = 0;
    // Tokens that end the sequence; allowed where the grammar may end. Empty: the tokenizer's
    // eos_token.
    std::span<const std::int32_t> stop_ids;
  };

  // Errors: invalid_argument (what is wrong in the source or the options), resource_exhausted.
  static Result<GrammarMatcher> create(const GrammarSource& source, const Tokenizer& tokenizer,
                                       const Options& options);

  GrammarMatcher(GrammarMatcher&&) noexcept;
  GrammarMatcher& operator=(GrammarMatcher&&) noexcept;
  ~GrammarMatcher();

  // The same state again; the two share nothing that changes. Far cheaper than create().
  Result<GrammarMatcher> clone() const;

  // ceil(vocab_size / 32).
  std::size_t mask_words() const { return mask_words_; }

  // Sets bit id % 32 of mask[id / 32] for every token that may come next and clears the others; all
  // bits are 0 after the end. mask.size() is mask_words().
  // Error resource_exhausted when the grammar is too ambiguous to go on.
  Result<void> allowed_mask(std::span<std::uint32_t> mask);

  // Advances by one token whose text may come next: one of the mask, or one that spells the same
  // text in other pieces (where only one text can go on, the mask has the tokenizer's own choice
  // alone). Error invalid_argument, without effect, when it may not.
  Result<void> accept(std::int32_t token_id);

  // Whether a stop token came, or nothing but a stop token can come.
  Result<bool> is_finished();

 private:
  struct Deleter {
    void operator()(sluice_grammar* handle) const;
  };
  GrammarMatcher(sluice_grammar* handle, std::size_t mask_words);

  std::unique_ptr<sluice_grammar, Deleter> handle_;
  std::size_t mask_words_;
};

}  // namespace sluice
