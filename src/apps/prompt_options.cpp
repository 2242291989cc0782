#include "apps/prompt_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "api/chat/chat_prompt.h"
#include "apps/options.h"
#include "platform/mapped_file.h"

namespace sluice::apps {
namespace {

namespace json = boost::json;

constexpr std::size_t kPromptFileBytesMax = std::size_t{64} << 20;

Result<const Tokenizer*> need_tokenizer(const TextSide& text) {
  if (!text.tokenizer) {
    return fail(ErrorCode::unsupported,
                "this model directory has no tokenizer.json: give --token-ids");
  }
  return &*text.tokenizer;
}

Result<std::vector<TokenId>> encode_chat(const PromptOptions& options, const TextSide& text) {
  json::array messages;
  if (options.system) {
    messages.push_back(json::object{{"role", "system"}, {"content", *options.system}});
  }
  messages.push_back(json::object{{"role", "user"}, {"content", *options.chat}});
  return SLUICE_TRY(encode_messages(messages, options.thinking, text)).token_ids;
}

}  // namespace

void add_prompt_options(CLI::App& command, PromptOptions& options, bool text) {
  auto* source = command.add_option_group("Prompt", "Exactly one of them");
  if (text) {
    source->add_option("--prompt", options.prompt, "Text to continue")->type_name("TEXT");
    source->add_option("--prompt-file", options.prompt_file, "File with the text to continue")
        ->type_name("FILE");
    auto* chat =
        source->add_option("--chat", options.chat, "A user message to answer")->type_name("TEXT");
    command.add_option("--system", options.system, "System message for --chat")
        ->type_name("TEXT")
        ->needs(chat);
    add_thinking_option(command, options.thinking);
  }
  source->add_option("--token-ids", options.token_ids, "Token ids: 1,2,3")->type_name("IDS");
  source->add_option("--token-ids-file", options.token_ids_file, "File with token ids")
      ->type_name("FILE");
  source->require_option(1);
}

void add_thinking_option(CLI::App& command, std::optional<bool>& thinking) {
  command.add_flag_callback(
      "--thinking", [&thinking] { thinking = true; }, "Let the model think first");
  command
      .add_flag_callback(
          "--no-thinking", [&thinking] { thinking = false; }, "Answer without thinking")
      ->excludes("--thinking");
}

Result<std::vector<TokenId>> make_prompt(const PromptOptions& options, const TextSide& text,
                                         const ModelConfig& config) {
  std::vector<TokenId> token_ids;
  if (options.token_ids) {
    token_ids = SLUICE_TRY(parse_token_ids(*options.token_ids, "--token-ids"));
  } else if (options.token_ids_file) {
    const std::string content =
        SLUICE_TRY(read_text_file(*options.token_ids_file, kPromptFileBytesMax));
    token_ids = SLUICE_TRY(parse_token_ids(content, *options.token_ids_file));
  } else if (options.chat) {
    token_ids = SLUICE_TRY(encode_chat(options, text));
  } else {
    const Tokenizer* tokenizer = SLUICE_TRY(need_tokenizer(text));
    const std::string prompt =
        options.prompt ? *options.prompt
                       : SLUICE_TRY(read_text_file(*options.prompt_file, kPromptFileBytesMax));
    token_ids = SLUICE_TRY(tokenizer->encode(prompt, ControlTokens::parse));
  }
  if (token_ids.empty()) {
    return fail(ErrorCode::invalid_argument, "the prompt is empty: want at least one token");
  }
  SLUICE_TRY(check_token_ids(token_ids, config.vocab_size,
                             options.token_ids_file ? *options.token_ids_file : "--token-ids"));
  return token_ids;
}

Result<EncodedPrompt> encode_messages(const json::array& messages, std::optional<bool> thinking,
                                      const TextSide& text) {
  const Tokenizer* tokenizer = SLUICE_TRY(need_tokenizer(text));
  if (!text.chat_template) {
    return fail(ErrorCode::unsupported, "this model directory has no chat template");
  }
  json::object variables{{"messages", messages}, {"add_generation_prompt", true}};
  if (thinking) {
    variables["enable_thinking"] = *thinking;
  }
  const PromptText prompt =
      SLUICE_TRY(text.chat_template->render(json::serialize(variables), *tokenizer));
  return EncodedPrompt{SLUICE_TRY(tokenizer->encode(prompt)), ends_inside_reasoning(prompt)};
}

}  // namespace sluice::apps
