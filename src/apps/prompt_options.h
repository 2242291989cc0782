// Where the prompt of `generate` and `score` comes from, and its way to token ids.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/model_loader.h"
#include "apps/pictures.h"
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
  std::vector<std::string> images;         // picture files, before the message of `chat`
  std::optional<std::string> token_ids;
  std::optional<std::string> token_ids_file;
  std::optional<bool> thinking;  // enable_thinking of the template; absent: its own default
};

// Exactly one source must be given (a usage error otherwise). text = false: only the token ids.
void add_prompt_options(CLI::App& command, PromptOptions& options, bool text);
void add_thinking_option(CLI::App& command, std::optional<bool>& thinking);

struct EncodedPrompt {
  std::vector<TokenId> token_ids;
  std::vector<VisionSpan> vision = {};
  bool starts_inside_reasoning = false;  // the template opened a think block at the end
};

// Token ids inside the vocabulary, at least one. Errors: invalid_argument, not_found (file),
// unsupported (text for a model without tokenizer, chat without template, pictures for a model
// without a vision encoder).
Result<EncodedPrompt> make_prompt(const PromptOptions& options,
                                  const std::filesystem::path& model_directory,
                                  const TextSide& text, const ModelConfig& config);

// What a user says after showing so many pictures: a string, or parts.
boost::json::value user_content(const std::string& text, std::size_t picture_count);

// Renders messages ({"role", "content", ...}) with the checkpoint's template and encodes them; the
// prompt asks for an answer. `pictures`: those of all messages, in their order.
Result<EncodedPrompt> encode_messages(const boost::json::array& messages,
                                      std::span<const PictureInput> pictures,
                                      std::optional<bool> thinking, const TextSide& text,
                                      const ModelConfig& config);

}  // namespace sluice::apps
