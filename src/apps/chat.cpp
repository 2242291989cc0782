#include "apps/chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/answer/answer_parser.h"
#include "apps/console.h"
#include "apps/embedded_model.h"
#include "apps/generation.h"
#include "apps/line_reader.h"
#include "apps/model_loader.h"
#include "apps/prompt_options.h"
#include "apps/sampling_options.h"
#include "apps/signal_watch.h"
#include "text/incremental_decoder.h"

namespace sluice::apps {
namespace {

namespace json = boost::json;

constexpr std::int64_t kDefaultContext = 8192;
constexpr std::size_t kReuseBytes = std::size_t{1} << 30;  // earlier turns, already computed
constexpr std::size_t kPictureBytes = std::size_t{64} << 20;
constexpr const char* kDim = "\x1b[2m";
constexpr const char* kPlain = "\x1b[0m";

struct ChatOptions {
  RuntimeOptions runtime;
  SamplingOptions sampling;
  std::optional<std::string> system;
  std::optional<bool> thinking;
  std::int64_t max_tokens = 0;  // 0: the rest of the context
  std::int64_t context = 0;     // 0: kDefaultContext, or less when the model has less
};

// Writes an answer as it grows, its reasoning dimmed on a terminal, and keeps both parts.
class AnswerPrinter {
 public:
  AnswerPrinter(const Tokenizer& tokenizer, bool starts_inside_reasoning)
      : decoder_(tokenizer),
        parser_(AnswerRules{.starts_inside_reasoning = starts_inside_reasoning, .stop = {}}) {}

  void append(const TokenEvent& event) {
    print(parser_.append(event, decoder_.append(event.token_id)));
  }

  void finish() {
    print(parser_.finish(decoder_.finish(), false));
    set_dim(false);
    fmt::print("\n");
  }

  // The message for the history.
  json::object message() const {
    json::object message{{"role", "assistant"}, {"content", content_}};
    if (!reasoning_.empty()) {
      message["reasoning_content"] = reasoning_;
    }
    return message;
  }

 private:
  void print(const std::vector<AnswerDelta>& deltas) {
    for (const AnswerDelta& delta : deltas) {
      const bool reasoning = delta.part == AnswerPart::reasoning;
      if (!reasoning && !reasoning_.empty() && content_.empty()) {
        fmt::print("\n\n");
      }
      set_dim(reasoning);
      (reasoning ? reasoning_ : content_) += delta.text;
      std::fwrite(delta.text.data(), 1, delta.text.size(), stdout);
    }
    std::fflush(stdout);
  }

  void set_dim(bool dim) {
    if (dim != dim_ && isatty(STDOUT_FILENO) == 1) {
      fmt::print("{}", dim ? kDim : kPlain);
    }
    dim_ = dim;
  }

  IncrementalDecoder decoder_;
  AnswerParser parser_;
  std::string reasoning_;
  std::string content_;
  bool dim_ = false;
};

class Conversation {
 public:
  Conversation(const ChatOptions& options, const ModelConfig& config, const TextSide& text,
               const SamplingParams& sampling, Engine& engine, SignalWatch& watch)
      : options_(&options),
        config_(&config),
        text_(&text),
        sampling_(sampling),
        engine_(&engine),
        watch_(&watch) {
    reset();
  }

  void reset() {
    messages_.clear();
    pictures_.clear();
    unsaid_ = 0;
    if (options_->system) {
      messages_.push_back(json::object{{"role", "system"}, {"content", *options_->system}});
    }
  }

  // The next message is about it, too.
  void show(PictureInput picture) {
    pictures_.push_back(std::move(picture));
    ++unsaid_;
  }

  // Answers one user message. After an Error the history is as it was before, and pictures that
  // were shown for this message are gone.
  Result<void> answer(const std::string& user_text) {
    const std::size_t turns = messages_.size();
    const std::size_t shown = std::exchange(unsaid_, 0);
    messages_.push_back(
        json::object{{"role", "user"}, {"content", user_content(user_text, shown)}});
    Result<void> done = answer_last();
    if (!done) {
      messages_.resize(turns);
      pictures_.resize(pictures_.size() - shown);
    }
    return done;
  }

 private:
  Result<void> answer_last() {
    EncodedPrompt prompt =
        SLUICE_TRY(encode_messages(messages_, pictures_, options_->thinking, *text_, *config_));
    const std::int64_t room =
        engine_->config().context_max - static_cast<std::int64_t>(prompt.token_ids.size());
    if (room < 1) {
      return fail(ErrorCode::resource_exhausted,
                  fmt::format("the conversation has {} tokens, the context {}: /reset starts anew",
                              prompt.token_ids.size(), engine_->config().context_max));
    }
    Request request;
    request.id = "chat";
    request.token_ids = std::move(prompt.token_ids);
    request.vision = std::move(prompt.vision);
    request.sampling = sampling_;
    request.stop.tokens_max =
        options_->max_tokens == 0 ? room : std::min(room, options_->max_tokens);
    request.stop.stop_token_ids = text_->generation.eos_token_ids;

    AnswerPrinter printer(*text_->tokenizer, prompt.starts_inside_reasoning);
    const GenerationEnd end = SLUICE_TRY(
        run_generation(*engine_, std::move(request), *watch_, [&printer](const TokenEvent& event) {
          printer.append(event);
          return true;
        }));
    printer.finish();
    if (end.finished.error) {
      return std::unexpected(*end.finished.error);
    }
    if (end.finished.reason == FinishReason::length) {
      print_note("[cut at {} tokens]\n", end.finished.usage.completion_tokens);
    }
    messages_.push_back(printer.message());
    return {};
  }

  const ChatOptions* options_;
  const ModelConfig* config_;
  const TextSide* text_;
  SamplingParams sampling_;
  Engine* engine_;
  SignalWatch* watch_;
  json::array messages_;
  std::vector<PictureInput> pictures_;  // of all messages
  std::size_t unsaid_ = 0;              // the last ones, of no message yet
};

void print_error(const Error& error) {
  print_note("sluice: error: {}\n", error.message);
}

// For the next message.
void show_picture(const std::filesystem::path& file, const Result<PictureReader>& reader,
                  Conversation& conversation) {
  auto picture = reader ? reader->read(file) : std::unexpected(reader.error());
  if (!picture) {
    print_error(picture.error());
    return;
  }
  print_note("[picture {}: {} tokens; now say something about it]\n", file.filename().string(),
             (*picture)->token_count());
  conversation.show(*std::move(picture));
}

// Reads and answers until the user leaves. `show` is given the picture files.
int converse(Conversation& conversation, SignalWatch& watch,
             const std::function<void(const std::filesystem::path&)>& show) {
  constexpr std::string_view kImage = "/image ";
  const bool prompts = isatty(STDIN_FILENO) == 1;
  if (prompts) {
    print_note(
        "Type a message. /image FILE (or a file dragged here) shows a picture, /reset forgets, "
        "/exit leaves, Ctrl-C stops an answer.\n");
  }
  LineReader reader(watch);
  std::string line;
  for (;;) {
    if (prompts) {
      print_note("> ");
    }
    const LineReader::Event event = reader.next(line);
    if (event == LineReader::Event::end || line == "/exit") {
      return kExitSuccess;
    }
    if (event == LineReader::Event::interrupted) {
      if (!prompts) {
        return kExitInterrupted;
      }
      print_note("\n");
      continue;
    }
    if (line == "/reset") {
      conversation.reset();
    } else if (const auto dropped = dropped_picture(line)) {
      show(*dropped);
    } else if (line.starts_with(kImage)) {
      show(line.substr(kImage.size()));
    } else if (line.starts_with('/')) {
      print_note("unknown command {}: there are /image FILE, /reset and /exit\n", line);
    } else if (!line.empty()) {
      if (const Result<void> answered = conversation.answer(line); !answered) {
        print_error(answered.error());
      }
    }
  }
}

Result<int> run_chat(const ChatOptions& options) {
  const std::filesystem::path directory = options.runtime.model.empty()
                                              ? SLUICE_TRY(find_embedded_model())
                                              : std::filesystem::path(options.runtime.model);
  const ModelConfig config = SLUICE_TRY(load_model_config(directory));
  const TextSide text = SLUICE_TRY(load_text_side(directory, config));
  if (!text.tokenizer || !text.chat_template) {
    return fail(ErrorCode::unsupported,
                fmt::format("{}: no {}, so there is nothing to chat with", directory.string(),
                            text.tokenizer ? "chat template" : "tokenizer.json"));
  }
  const SamplingParams sampling = SLUICE_TRY(resolve_sampling(options.sampling, text.generation));

  EngineConfig engine_config;
  engine_config.context_max = SLUICE_TRY(choose_context(options.context, kDefaultContext, config));
  engine_config.sequences_max = 1;
  engine_config.reuse_bytes = kReuseBytes;
  engine_config.picture_bytes = kPictureBytes;
  engine_config.sampled_vocab_size = sampled_vocab_size(text, config);
  const auto reader = PictureReader::open(directory, config);
  const ModelOptions model_options{
      .step_tokens_max = engine_config.prefill_step_max,
      .step_logit_rows_max = 1,
      .vision_patches_max =
          reader ? vision_patches_max(reader->preprocessor(), engine_config.context_max) : 0};
  const std::unique_ptr<LoadedModel> loaded =
      SLUICE_TRY(LoadedModel::load(directory, config, options.runtime, model_options));
  const std::unique_ptr<SignalWatch> watch = SLUICE_TRY(SignalWatch::start());
  const std::unique_ptr<Engine> engine =
      SLUICE_TRY(start_engine(loaded->model(), engine_config, options.runtime.quiet));
  Conversation conversation(options, config, text, sampling, *engine, *watch);
  return converse(conversation, *watch, [&](const std::filesystem::path& file) {
    show_picture(file, reader, conversation);
  });
}

}  // namespace

void add_chat_command(CLI::App& program, Action& action) {
  auto options = std::make_shared<ChatOptions>();
  options->sampling.defaults = SamplingDefaults::model;
  CLI::App* command = program.add_subcommand("chat", "Talk to the model in the terminal");
  add_runtime_options(*command, options->runtime, false);
  command->add_option("--system", options->system, "System message")->type_name("TEXT");
  add_thinking_option(*command, options->thinking);
  check_integer(*command
                     ->add_option("--max-tokens", options->max_tokens,
                                  "Tokens of one answer; 0: what the context has left")
                     ->type_name("N"),
                {0, kPromptTokensMax});
  check_integer(*command
                     ->add_option("--context", options->context,
                                  "Tokens of the conversation; 0: 8192, or what the model has")
                     ->type_name("N"),
                {0, kPromptTokensMax});
  add_sampling_options(*command, options->sampling);
  command->callback([options, &action] { action = [options] { return run_chat(*options); }; });
}

}  // namespace sluice::apps
