#include "apps/validate_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>

namespace sluice::apps {
namespace {

constexpr std::int64_t kNeedleTokensMin = 512;
constexpr std::int64_t kCacheTokensMin = 300;
constexpr std::int64_t kRateTokensMin = 128;

void add_choice_options(CLI::App& command, ValidateOptions& options) {
  command.add_option("--only", options.only, "Only these checks: ID,ID,...; see --list")
      ->delimiter(',')
      ->type_name("ID");
  command.add_option("--skip", options.skip, "All but these checks")
      ->delimiter(',')
      ->type_name("ID");
  command.add_flag("--exactness", options.only_exactness, "The same as --only batch");
  command.add_flag("--quick", options.quick, "Fewer and shorter: under a minute on a small model");
  command.add_flag("--list", options.list, "Print the checks and what each proves");
}

void add_size_options(CLI::App& command, ValidateOptions& options) {
  check_integer(*command
                     .add_option("--long", options.long_tokens,
                                 "Prompt tokens of the long sequence of the state-reset check")
                     ->type_name("N")
                     ->capture_default_str(),
                {128, kPromptTokensMax});
  check_integer(
      *command
           .add_option("--rounds", options.exactness.rounds, "Engines that the check `batch` tries")
           ->type_name("N")
           ->capture_default_str(),
      {1, 1000000});
  check_integer(
      *command.add_option("--requests", options.exactness.requests, "Requests to each of them")
           ->type_name("N")
           ->capture_default_str(),
      {1, 10000});
  check_integer(*command
                     .add_option("--prompt-tokens", options.exactness.prompt_tokens_max,
                                 "Tokens of the longest shared beginning of their prompts")
                     ->type_name("N")
                     ->capture_default_str(),
                {1, 900});
  check_integer(*command.add_option("--seed", options.exactness.seed, "Of everything made up")
                     ->type_name("N")
                     ->capture_default_str(),
                {0, std::int64_t{1} << 53});
  check_integer(
      *command.add_option("--memory", options.memory_mib, "MiB an engine may plan for sequences")
           ->type_name("N")
           ->capture_default_str(),
      {1, std::int64_t{1} << 24});
  check_integer(
      *command
           .add_option("--needle-tokens", options.needle_tokens,
                       "Prompt tokens of the long texts, N,N,...; default: 1024,8192,32768 as the "
                       "context allows")
           ->delimiter(',')
           ->type_name("N"),
      {kNeedleTokensMin, kPromptTokensMax});
  check_integer(*command
                     .add_option("--cache-tokens", options.cache_tokens,
                                 "Prompt tokens that requests of the check `cache` share")
                     ->type_name("N")
                     ->capture_default_str(),
                {kCacheTokensMin, kPromptTokensMax / 4});
  check_integer(*command
                     .add_option("--rate-tokens", options.rate_tokens,
                                 "Prompt tokens of the checks `rates` and `gaps`, N,N,...; "
                                 "default: 512,2048,8192,32768")
                     ->delimiter(',')
                     ->type_name("N"),
                {kRateTokensMin, kPromptTokensMax});
}

}  // namespace

void add_validate_options(CLI::App& command, ValidateOptions& options) {
  add_runtime_options(command, options.runtime, false);
  add_choice_options(command, options);
  command
      .add_option("--url", options.url,
                  "Check the running server http://HOST:PORT instead of a model: needles, cache, "
                  "rates, gaps")
      ->type_name("URL");
  command.add_option("--api-key", options.api_key, "Key for --url")->type_name("KEY");
  command
      .add_option("--golden", options.golden,
                  "Greedy tokens of an independent implementation; default: validation_golden.json "
                  "beside the weights")
      ->type_name("FILE");
  CLI::Option* reference =
      command
          .add_option("--reference", options.reference,
                      "Another model, normally the bf16 one this was made of: how near is it?")
          ->type_name("DIR");
  command
      .add_option("--reference-text", options.reference_text,
                  "Text for that, control tokens as they are spelled; default: made-up sentences")
      ->type_name("FILE")
      ->needs(reference);
  command
      .add_option("--json", options.json, "The report as one JSON object; without FILE to stdout")
      ->expected(0, 1)
      ->default_str("-")
      ->type_name("[FILE]");
  command.add_option("--html", options.html, "The report as one HTML file")->type_name("FILE");
  add_size_options(command, options);
}

void apply_defaults(ValidateOptions& options) {
  if (options.only_exactness) {
    options.only = {"batch"};
  }
  if (options.quick) {
    options.exactness.rounds = std::min<std::int64_t>(options.exactness.rounds, 2);
    options.exactness.requests = std::min<std::int64_t>(options.exactness.requests, 15);
    options.exactness.prompt_tokens_max =
        std::min<std::int64_t>(options.exactness.prompt_tokens_max, 400);
    options.long_tokens = std::min<std::int64_t>(options.long_tokens, 600);
    options.cache_tokens = std::min<std::int64_t>(options.cache_tokens, 700);
  }
  options.exactness.memory_max = static_cast<std::size_t>(options.memory_mib) << 20;
  if (options.needle_tokens.empty()) {
    options.needle_tokens = options.quick ? std::vector<std::int64_t>{1024, 4096}
                                          : std::vector<std::int64_t>{1024, 8192, 32768};
  }
  if (options.rate_tokens.empty()) {
    options.rate_tokens = options.quick ? std::vector<std::int64_t>{256, 1024, 3072}
                                        : std::vector<std::int64_t>{512, 2048, 8192, 32768};
  }
  std::ranges::sort(options.needle_tokens);
  std::ranges::sort(options.rate_tokens);
}

}  // namespace sluice::apps
