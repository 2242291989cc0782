// GrammarMatcher: checks the options, then asks the Rust crate (rust/src/grammar.rs).
#include "text/grammar_matcher.h"

#include <optional>
#include <string>

#include "text/rust_call.h"

namespace sluice {
namespace {

sluice_grammar_kind to_rust(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::json_schema:
      return SLUICE_GRAMMAR_JSON_SCHEMA;
    case GrammarKind::regex:
      return SLUICE_GRAMMAR_REGEX;
    case GrammarKind::lark:
      break;
  }
  return SLUICE_GRAMMAR_LARK;
}

}  // namespace

Result<GrammarMatcher> GrammarMatcher::create(const GrammarSource& source,
                                              const Tokenizer& tokenizer, const Options& options) {
  if (options.vocab_size < tokenizer.vocab_size()) {
    return fail(ErrorCode::invalid_argument, "vocab_size: " + std::to_string(options.vocab_size) +
                                                 ", the tokenizer has ids up to " +
                                                 std::to_string(tokenizer.vocab_size() - 1));
  }
  const std::optional<std::int32_t> eos = tokenizer.eos_token_id();
  std::span<const std::int32_t> stop_ids = options.stop_ids;
  if (stop_ids.empty() && eos) {
    stop_ids = std::span(&*eos, 1);
  }
  sluice_grammar_source rust_source{};
  rust_source.struct_size = sizeof(rust_source);
  rust_source.kind = to_rust(source.kind);
  rust_source.text = rust_data(source.text);
  rust_source.text_len = source.text.size();
  rust_source.stop_ids = stop_ids.data();
  rust_source.stop_ids_len = stop_ids.size();
  sluice_grammar* handle = nullptr;
  SLUICE_TRY(rust_call("", sluice_grammar_new, tokenizer.handle(), &rust_source, &handle));
  return GrammarMatcher(handle, (static_cast<std::size_t>(options.vocab_size) + 31) / 32);
}

GrammarMatcher::GrammarMatcher(sluice_grammar* handle, std::size_t mask_words)
    : handle_(handle), mask_words_(mask_words) {}
GrammarMatcher::GrammarMatcher(GrammarMatcher&&) noexcept = default;
GrammarMatcher& GrammarMatcher::operator=(GrammarMatcher&&) noexcept = default;
GrammarMatcher::~GrammarMatcher() = default;

void GrammarMatcher::Deleter::operator()(sluice_grammar* handle) const {
  sluice_grammar_free(handle);
}

Result<GrammarMatcher> GrammarMatcher::clone() const {
  sluice_grammar* handle = nullptr;
  SLUICE_TRY(rust_call("", sluice_grammar_clone, handle_.get(), &handle));
  return GrammarMatcher(handle, mask_words_);
}

Result<void> GrammarMatcher::allowed_mask(std::span<std::uint32_t> mask) {
  if (mask.size() != mask_words_) {
    return fail(ErrorCode::invalid_argument, "mask: " + std::to_string(mask.size()) +
                                                 " words, want " + std::to_string(mask_words_));
  }
  return rust_call("", sluice_grammar_allowed_mask, handle_.get(), mask.data(), mask.size());
}

Result<void> GrammarMatcher::accept(std::int32_t token_id) {
  return rust_call("", sluice_grammar_accept, handle_.get(), token_id);
}

Result<bool> GrammarMatcher::is_finished() {
  bool finished = false;
  SLUICE_TRY(rust_call("", sluice_grammar_is_finished, handle_.get(), &finished));
  return finished;
}

}  // namespace sluice
