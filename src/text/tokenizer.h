// Text to token ids and back, with the checkpoint's own tokenizer.json (Hugging Face tokenizers).
//
// Control tokens (<|im_start|>, <think>, <tool_call>, ...) are only made where the caller says the
// text may contain them: user text that spells one out stays ordinary characters.
//
// Thread rule: const methods may run concurrently.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

struct sluice_tokenizer;  // C ABI of the Rust crate

namespace sluice {

// Text for the tokenizer, with the byte ranges [begin, end) in which control-token spellings are
// ordinary characters (they came from a user, a tool or a document). Ranges are ascending and
// disjoint.
struct PromptText {
  std::string text;
  std::vector<std::pair<std::size_t, std::size_t>> literal_ranges;
  // Whose text it is: long pieces are remembered for the owner's next prompts, which are encoded in
  // less time then. None: nothing is remembered.
  std::optional<std::string> owner = std::nullopt;
};

enum class ControlTokens {
  parse,    // spellings of control tokens become their ids
  literal,  // every character is ordinary text
};

class Tokenizer {
 public:
  // Reads tokenizer.json and tokenizer_config.json (which may list further added tokens).
  // Errors: not_found, corrupt_data, each with the file.
  static Result<Tokenizer> load(const std::filesystem::path& model_directory);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Errors: invalid_argument (text is not UTF-8, ranges not ascending or inside a character),
  // resource_exhausted (more than 8 MiB). Time is linear, about 0.5 s per MiB; so is memory. Lines
  // that a PromptText has in common with earlier ones of its owner take next to none.
  Result<std::vector<std::int32_t>> encode(std::string_view text, ControlTokens control) const;
  Result<std::vector<std::int32_t>> encode(const PromptText& prompt) const;

  // Ids outside [0, vocab_size()) and ids without a token are an Error invalid_argument.
  Result<std::string> decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const;

  // The exact bytes one token stands for (may be part of a character). Empty for an unknown id.
  std::string_view token_bytes(std::int32_t id) const;

  // Whether decode() with skip_special_tokens leaves this token out.
  bool is_special(std::int32_t id) const;

  // The id of an exact token spelling such as "<|im_end|>".
  std::optional<std::int32_t> token_id(std::string_view token) const;

  // Largest id + 1. The embedding may have more rows (padding): those are never sampled.
  std::int32_t vocab_size() const;

  // The token named eos_token in tokenizer_config.json.
  std::optional<std::int32_t> eos_token_id() const;

  const sluice_tokenizer* handle() const {
    return handle_.get();
  }  // for the other classes of text/

 private:
  struct Deleter {
    void operator()(sluice_tokenizer* handle) const;
  };
  explicit Tokenizer(sluice_tokenizer* handle);

  std::unique_ptr<sluice_tokenizer, Deleter> handle_;
};

}  // namespace sluice
