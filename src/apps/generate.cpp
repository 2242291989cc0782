#include "apps/generate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/answer/stop_matcher.h"
#include "api/fields/json_text.h"
#include "api/openai/openai_reply.h"
#include "apps/console.h"
#include "apps/generation.h"
#include "apps/model_loader.h"
#include "apps/prompt_options.h"
#include "apps/sampling_options.h"
#include "apps/signal_watch.h"
#include "sampling/sampler.h"
#include "text/incremental_decoder.h"

namespace sluice::apps {
namespace {

namespace json = boost::json;

struct GenerateOptions {
  RuntimeOptions runtime;
  PromptOptions prompt;
  SamplingOptions sampling;
  std::int64_t max_tokens = 256;
  std::int64_t context = 0;  // 0: as long as prompt and answer
  std::int64_t prefill_step = 512;
  bool ignore_eos = false;
  std::vector<std::string> stop;
  std::int32_t logprobs = -1;
  bool json = false;
};

// The answer as it grows: tokens, and the text up to the first stop text.
class Answer {
 public:
  Answer(const TextSide& text, const GenerateOptions& options)
      : tokenizer_(text.tokenizer ? &*text.tokenizer : nullptr),
        streams_(!options.json),
        stop_matcher_(options.stop, false) {
    if (tokenizer_ != nullptr) {
      decoder_.emplace(*tokenizer_);
    }
  }

  // False once a stop text is complete.
  bool append(const TokenEvent& event) {
    events_.push_back(event);
    if (decoder_) {
      let_out(stop_matcher_.append(decoder_->append(event.token_id)));
    } else if (streams_) {
      let_out(fmt::format("{}{}", events_.size() == 1 ? "" : ",", event.token_id));
    }
    return !stop_matcher_.matched();
  }

  void finish() {
    if (decoder_ && !stop_matcher_.matched()) {
      let_out(stop_matcher_.append(decoder_->finish()));
      let_out(stop_matcher_.finish());
    }
    if (streams_) {
      let_out("\n");
    }
  }

  bool stopped_by_text() const { return stop_matcher_.matched().has_value(); }
  const std::string& text() const { return text_; }
  const std::vector<TokenEvent>& events() const { return events_; }

  // The text of one token alone: bytes of half a character show as U+FFFD.
  std::string token_text(TokenId id) const {
    return tokenizer_ == nullptr ? std::string()
                                 : replace_invalid_utf8(tokenizer_->token_bytes(id));
  }

 private:
  void let_out(const std::string& piece) {
    if (streams_) {
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
    } else {
      text_ += piece;
    }
  }

  const Tokenizer* tokenizer_;
  bool streams_;
  StopMatcher stop_matcher_;
  std::optional<IncrementalDecoder> decoder_;
  std::vector<TokenEvent> events_;
  std::string text_;
};

json::array logprobs_to_json(const Answer& answer) {
  json::array positions;
  for (const TokenEvent& event : answer.events()) {
    json::array top;
    for (const TokenLogprob& best : event.top_logprobs) {
      top.push_back(json::object{{"token_id", best.token_id},
                                 {"token", answer.token_text(best.token_id)},
                                 {"logprob", finite_logprob(best.logprob)}});
    }
    positions.push_back(json::object{{"token_id", event.token_id},
                                     {"token", answer.token_text(event.token_id)},
                                     {"logprob", finite_logprob(event.logprob.value_or(-INFINITY))},
                                     {"top_logprobs", std::move(top)}});
  }
  return positions;
}

double rate(std::int64_t tokens, double seconds) {
  return seconds > 0.0 && tokens > 0 ? static_cast<double>(tokens) / seconds : 0.0;
}

json::object timings_to_json(const GenerationFinished& finished, double load_seconds) {
  const Timings& timings = finished.timings;
  // The prompt's last step already gives the first token: decoding makes the others.
  const std::int64_t decoded = finished.usage.completion_tokens - 1;
  const std::int64_t prefilled = finished.usage.prompt_tokens - finished.usage.cached_tokens;
  return {{"load_seconds", load_seconds},
          {"prefill_seconds", timings.prefill_seconds},
          {"decode_seconds", timings.decode_seconds},
          {"prefill_tokens_per_second", rate(prefilled, timings.prefill_seconds)},
          {"decode_tokens_per_second", rate(decoded, timings.decode_seconds)}};
}

json::object answer_to_json(const Answer& answer, const GenerationFinished& finished,
                            FinishReason reason, double load_seconds, bool logprobs) {
  json::array token_ids;
  for (const TokenEvent& event : answer.events()) {
    token_ids.push_back(event.token_id);
  }
  const Usage& usage = finished.usage;
  json::object object{{"token_ids", std::move(token_ids)},
                      {"text", answer.text()},
                      {"finish_reason", to_string(reason)},
                      {"timings", timings_to_json(finished, load_seconds)},
                      {"usage", json::object{{"prompt_tokens", usage.prompt_tokens},
                                             {"cached_tokens", usage.cached_tokens},
                                             {"completion_tokens", usage.completion_tokens}}}};
  if (logprobs) {
    object["logprobs"] = logprobs_to_json(answer);
  }
  return object;
}

Request make_request(const GenerateOptions& options, const GenerationConfig& generation,
                     EncodedPrompt prompt, const SamplingParams& sampling) {
  Request request;
  request.id = "generate";
  request.token_ids = std::move(prompt.token_ids);
  request.vision = std::move(prompt.vision);
  request.sampling = sampling;
  request.sampling.logprobs = options.logprobs;
  request.stop.tokens_max = options.max_tokens;
  request.stop.stop_token_ids = generation.eos_token_ids;
  request.stop.ignore_eos = options.ignore_eos;
  return request;
}

Result<int> report(Answer& answer, const GenerationEnd& end, const GenerateOptions& options,
                   double load_seconds) {
  answer.finish();
  const GenerationFinished& finished = end.finished;
  if (finished.error) {
    return std::unexpected(*finished.error);
  }
  // A stop text ends the generation by cancelling it: that is a stop, not a cancellation.
  const FinishReason reason =
      answer.stopped_by_text() && !end.interrupted ? FinishReason::stop : finished.reason;
  if (options.json) {
    const json::object object =
        answer_to_json(answer, finished, reason, load_seconds, options.logprobs >= 0);
    fmt::print("{}\n", json::serialize(object));
  } else if (!options.runtime.quiet) {
    const json::object timings = timings_to_json(finished, load_seconds);
    print_note(
        "{} + {} tokens, finish reason {}; prefill {:.1f} tokens/s, decode {:.1f} "
        "tokens/s\n",
        finished.usage.prompt_tokens, finished.usage.completion_tokens, to_string(reason),
        timings.at("prefill_tokens_per_second").as_double(),
        timings.at("decode_tokens_per_second").as_double());
  }
  return end.interrupted ? kExitInterrupted : kExitSuccess;
}

// Tokens to reserve: as given, else prompt and answer. The prompt must leave room for a token.
Result<std::int64_t> generate_context(const GenerateOptions& options, std::int64_t prompt_tokens,
                                      const ModelConfig& config) {
  const std::int64_t context = options.context != 0
                                   ? options.context
                                   : prompt_tokens + std::max(options.max_tokens, std::int64_t{1});
  SLUICE_TRY(check_context(context, config));
  if (prompt_tokens >= context) {
    return fail(ErrorCode::resource_exhausted,
                fmt::format("the prompt has {} tokens, --context only {}", prompt_tokens, context));
  }
  return context;
}

// In patches; 0: there is none.
std::int64_t largest_picture(const std::vector<VisionSpan>& pictures) {
  std::int64_t patches = 0;
  for (const VisionSpan& picture : pictures) {
    patches = std::max(patches, picture.input->grid_rows * picture.input->grid_columns);
  }
  return patches;
}

Result<int> run_generate(const GenerateOptions& options) {
  const std::filesystem::path directory = options.runtime.model;
  const ModelConfig config = SLUICE_TRY(load_model_config(directory));
  const TextSide text = SLUICE_TRY(load_text_side(directory, config));
  EncodedPrompt prompt = SLUICE_TRY(make_prompt(options.prompt, directory, text, config));
  const SamplingParams sampling = SLUICE_TRY(resolve_sampling(options.sampling, text.generation));

  EngineConfig engine_config;
  engine_config.context_max =
      SLUICE_TRY(generate_context(options, std::ssize(prompt.token_ids), config));
  engine_config.sequences_max = 1;
  engine_config.prefill_step_max = options.prefill_step;
  engine_config.sampled_vocab_size = sampled_vocab_size(text, config);

  const ModelOptions model_options{.step_tokens_max = options.prefill_step,
                                   .step_logit_rows_max = 1,
                                   .vision_patches_max = largest_picture(prompt.vision)};
  const std::unique_ptr<LoadedModel> loaded =
      SLUICE_TRY(LoadedModel::load(directory, config, options.runtime, model_options));
  const std::unique_ptr<SignalWatch> watch = SLUICE_TRY(SignalWatch::start());
  const std::unique_ptr<Engine> engine =
      SLUICE_TRY(start_engine(loaded->model(), engine_config, options.runtime.quiet));

  Answer answer(text, options);
  const GenerationEnd end = SLUICE_TRY(
      run_generation(*engine, make_request(options, text.generation, std::move(prompt), sampling),
                     *watch, [&answer](const TokenEvent& event) { return answer.append(event); }));
  return report(answer, end, options, loaded->load_seconds());
}

}  // namespace

void add_generate_command(CLI::App& program, Action& action) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* command = program.add_subcommand("generate", "Answer one prompt");
  add_runtime_options(*command, options->runtime, true);
  add_prompt_options(*command, options->prompt, true);
  constexpr Limits<std::int64_t> kTokens{0, kPromptTokensMax};
  check_integer(*command->add_option("--max-tokens", options->max_tokens, "Tokens to make at most")
                     ->type_name("N")
                     ->capture_default_str(),
                kTokens);
  check_integer(*command
                     ->add_option("--context", options->context,
                                  "Tokens of prompt and answer; 0: as many as needed")
                     ->type_name("N"),
                kTokens);
  check_integer(
      *command
           ->add_option("--prefill-step", options->prefill_step, "Prompt tokens computed in one go")
           ->type_name("N")
           ->capture_default_str(),
      {1, kStepTokensMax});
  command->add_flag("--ignore-eos", options->ignore_eos, "Go on at the end-of-text token");
  command->add_option("--stop", options->stop, "Text that ends the answer; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  check_integer(*command
                     ->add_option("--logprobs", options->logprobs,
                                  "With --json: log-probabilities of the token and the N best")
                     ->type_name("N"),
                {0, kLogprobsMax});
  command->add_flag("--json", options->json, "Print one JSON object instead of the text");
  add_sampling_options(*command, options->sampling);
  command->callback([options, &action] { action = [options] { return run_generate(*options); }; });
}

}  // namespace sluice::apps
