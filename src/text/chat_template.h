// The checkpoint's own chat_template.jinja (or the chat_template of tokenizer_config.json),
// evaluated by minijinja with Python's string methods.
// Thread rule: const methods may run concurrently.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "text/tokenizer.h"

struct sluice_chat_template;  // C ABI of the Rust crate

namespace sluice {

class ChatTemplate {
 public:
  // Errors: not_found (neither source exists), corrupt_data (syntax, with line).
  static Result<ChatTemplate> load(const std::filesystem::path& model_directory);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // variables_json: an object with everything the template sees: "messages", optional "tools",
  // "add_generation_prompt", "enable_thinking", ... Key order is kept.
  // In the result, spellings of control tokens that stem from strings of "messages" and "tools" are
  // literal ranges; those the template wrote itself are not. `tokenizer` names the control tokens.
  // Error invalid_argument with the template's own words when it calls raise_exception.
  Result<PromptText> render(std::string_view variables_json, const Tokenizer& tokenizer) const;

 private:
  struct Deleter {
    void operator()(sluice_chat_template* handle) const;
  };
  explicit ChatTemplate(sluice_chat_template* handle);

  std::unique_ptr<sluice_chat_template, Deleter> handle_;
};

}  // namespace sluice
