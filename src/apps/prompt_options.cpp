#include "apps/prompt_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "api/chat/chat_prompt.h"
#include "api/chat/vision_prompt.h"
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

Result<EncodedPrompt> encode_chat(const PromptOptions& options,
                                  const std::filesystem::path& model_directory,
                                  const TextSide& text, const ModelConfig& config) {
  std::vector<PictureInput> pictures;
  if (!options.images.empty()) {
    const PictureReader reader = SLUICE_TRY(PictureReader::open(model_directory, config));
    for (const std::string& image : options.images) {
      pictures.push_back(SLUICE_TRY(reader.read(image)));
    }
  }
  json::array messages;
  if (options.system) {
    messages.push_back(json::object{{"role", "system"}, {"content", *options.system}});
  }
  messages.push_back(
      json::object{{"role", "user"}, {"content", user_content(*options.chat, pictures.size())}});
  return encode_messages(messages, pictures, options.thinking, text, config);
}

// The prompt with the rows of every picture in place of its placeholder.
Result<EncodedPrompt> place_pictures(const PromptText& prompt,
                                     std::span<const PictureInput> pictures,
                                     const Tokenizer& tokenizer, const ModelConfig& config) {
  std::vector<PromptMedia> media;
  for (const PictureInput& picture : pictures) {
    media.push_back({.kind = MediaKind::image, .pictures = {{picture->token_count()}}});
  }
  const VisionText shown = SLUICE_TRY(VisionText::make(prompt, media));
  const std::vector<TokenId> token_ids = SLUICE_TRY(tokenizer.encode(shown.prompt()));
  VisionTokens tokens = SLUICE_TRY(repeat_placeholders(
      token_ids, media, {.image = config.image_token_id, .video = config.video_token_id}));
  EncodedPrompt encoded{.token_ids = std::move(tokens.token_ids)};
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    encoded.vision.push_back({.position = tokens.pictures[i].position, .input = pictures[i]});
  }
  return encoded;
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
    command.add_option("--image", options.images, "Picture to show before the message; repeatable")
        ->type_name("FILE")
        ->allow_extra_args(false)
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

Result<EncodedPrompt> make_prompt(const PromptOptions& options,
                                  const std::filesystem::path& model_directory,
                                  const TextSide& text, const ModelConfig& config) {
  EncodedPrompt encoded;
  std::vector<TokenId>& token_ids = encoded.token_ids;
  if (options.token_ids) {
    token_ids = SLUICE_TRY(parse_token_ids(*options.token_ids, "--token-ids"));
  } else if (options.token_ids_file) {
    const std::string content =
        SLUICE_TRY(read_text_file(*options.token_ids_file, kPromptFileBytesMax));
    token_ids = SLUICE_TRY(parse_token_ids(content, *options.token_ids_file));
  } else if (options.chat) {
    encoded = SLUICE_TRY(encode_chat(options, model_directory, text, config));
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
  return encoded;
}

json::value user_content(const std::string& text, std::size_t picture_count) {
  if (picture_count == 0) {
    return json::value(text);
  }
  json::array parts(picture_count, json::object{{"type", "image"}});
  parts.push_back(json::object{{"type", "text"}, {"text", text}});
  return parts;
}

Result<EncodedPrompt> encode_messages(const json::array& messages,
                                      std::span<const PictureInput> pictures,
                                      std::optional<bool> thinking, const TextSide& text,
                                      const ModelConfig& config) {
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
  EncodedPrompt encoded = pictures.empty()
                              ? EncodedPrompt{.token_ids = SLUICE_TRY(tokenizer->encode(prompt))}
                              : SLUICE_TRY(place_pictures(prompt, pictures, *tokenizer, config));
  encoded.starts_inside_reasoning = ends_inside_reasoning(prompt);
  return encoded;
}

}  // namespace sluice::apps
