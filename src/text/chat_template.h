// The checkpoint's own chat_template.jinja (or the chat_template of tokenizer_config.json),
// evaluated by minijinja with Python's string methods.
//
// Whose text it is decides what a control token is. Strings of the variables come from users, tools
// and documents; where they spell a control token the prompt carries the characters, not the token,
// also when the template joins a token from pieces ("<|im_" + "end|>"). What the template writes
// itself are tokens. A template's questions about a text (does it contain </think>, does it start
// with <tool_response>?) get the answer they would get in Python, so the rendered text is the
// reference text, byte for byte. Hence: an assistant's "<think>r</think>a" in `content` is split by
// templates that do so, and they write their own tags; a user's or a tool's tags stay text.
//
// Thread rule: const methods may run concurrently.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/tokenizer.h"

struct sluice_chat_template;  // C ABI of the Rust crate

namespace sluice {

class ChatTemplate {
 public:
  static constexpr std::size_t kSourceBytesMax = std::size_t{1} << 20;

  // Errors: not_found (neither source exists), corrupt_data (syntax, with line).
  static Result<ChatTemplate> load(const std::filesystem::path& model_directory);

  // A template that no file has; `where` names it in errors. Errors: corrupt_data.
  static Result<ChatTemplate> compile(std::string source, const std::string& where);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // As the checkpoint has it.
  const std::string& source() const { return source_; }

  // variables_json: an object with everything the template sees: "messages", optional "tools",
  // "add_generation_prompt", "enable_thinking", ... Key order is kept.
  // In the result, spellings of control tokens that stem from strings (and keys) of the variables
  // are literal ranges; those the template wrote itself are not. `tokenizer` names the control
  // tokens. A variable named *_token whose value is exactly a control token (eos_token) counts as
  // the template's: do not let clients set those. Integers beyond 64 bits are read as floats.
  // Errors: invalid_argument (the JSON; or the template's own words when it calls raise_exception),
  // resource_exhausted (the template ran too long, or the variables are larger than 64 MiB).
  Result<PromptText> render(std::string_view variables_json, const Tokenizer& tokenizer) const;

 private:
  struct Deleter {
    void operator()(sluice_chat_template* handle) const;
  };
  ChatTemplate(std::string source, sluice_chat_template* handle);

  std::string source_;
  std::unique_ptr<sluice_chat_template, Deleter> handle_;
};

}  // namespace sluice
