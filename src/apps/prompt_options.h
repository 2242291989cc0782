// Where the prompt of `generate` and `score` comes from, and its way to token ids.
#pragma once

#include <boost/json/array.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/model_loader.h"
#include "base/result.h"
#include "request/request.h"

namespace CLI {
class App;
}

namespace sluice::apps {

struct PromptOptions {
  std::optional<std::string> prompt;       // raw text; control tokens may be spelled out
  std::optional<std::string> prompt_file;  // the same, from a file
  std::optional<std::string> chat;         // one user message, through the chat template
  std::optional<std::string> system;       // system message of `chat`
  std::optional<std::string> token_ids;
  std::optional<std::string> token_ids_file;
  std::optional<bool> thinking;  // enable_thinking of the template; absent: its own default
};

// Exactly one source must be given (a usage error otherwise). text = false: only the token ids.
void add_prompt_options(CLI::App& command, PromptOptions& options, bool text);
void add_thinking_option(CLI::App& command, std::optional<bool>& thinking);

// Token ids inside the vocabulary, at least one. Errors: invalid_argument, not_found (file),
// unsupported (text for a model without tokenizer, chat without template).
Result<std::vector<TokenId>> make_prompt(const PromptOptions& options, const TextSide& text,
                                         const ModelConfig& config);

struct EncodedPrompt {
  std::vector<TokenId> token_ids;
  bool starts_inside_reasoning = false;  // the template opened a think block at the end
};

// Renders messages ({"role", "content", ...}) with the checkpoint's template and encodes them; the
// prompt asks for an answer.
Result<EncodedPrompt> encode_messages(const boost::json::array& messages,
                                      std::optional<bool> thinking, const TextSide& text);

}  // namespace sluice::apps
