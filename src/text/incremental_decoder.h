// Turns a stream of token ids into a stream of UTF-8 text without ever splitting a character:
// bytes of an unfinished character wait for the next token.
// Thread rule: one owner. The tokenizer must outlive the decoder.
#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace sluice {

class IncrementalDecoder {
 public:
  explicit IncrementalDecoder(const Tokenizer& tokenizer, bool skip_special_tokens = true)
      : tokenizer_(&tokenizer), skip_special_tokens_(skip_special_tokens) {}

  // The text that became complete with this token; may be empty.
  std::string append(std::int32_t token_id);

  // The rest at the end of the sequence: U+FFFD for a character that was never finished.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  std::string pending_;  // bytes of an unfinished character, at most three
};

}  // namespace sluice
