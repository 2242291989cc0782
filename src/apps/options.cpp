#include "apps/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <limits>

namespace sluice::apps {
namespace {

bool is_separator(char c) {
  return c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// -?(0|[1-9][0-9]*)
bool is_plain_integer(std::string_view text) {
  if (text.starts_with('-')) {
    text.remove_prefix(1);
  }
  const bool leading_zero = text.size() > 1 && text[0] == '0';
  return !text.empty() && !leading_zero &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Quotes what was typed, shortened: a file may have anything in it.
std::string quote(std::string_view text) {
  constexpr std::size_t kShownMax = 40;
  return text.size() <= kShownMax ? fmt::format("'{}'", text)
                                  : fmt::format("'{}...'", text.substr(0, kShownMax));
}

CLI::Validator validator(std::function<Result<void>(std::string_view)> check) {
  return CLI::Validator(
      [check = std::move(check)](std::string& text) {
        const Result<void> result = check(text);
        return result ? std::string() : result.error().message;
      },
      "");
}

}  // namespace

Result<std::int64_t> parse_integer(std::string_view text, Limits<std::int64_t> limits,
                                   std::string_view what) {
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!is_plain_integer(text) || parsed.ec != std::errc() || value < limits.min ||
      value > limits.max) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} {}: want an integer from {} to {}", what, quote(text), limits.min,
                            limits.max));
  }
  return value;
}

Result<double> parse_number(std::string_view text, Limits<double> limits, std::string_view what) {
  double value = 0.0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || !std::isfinite(value) ||
      value < limits.min || value > limits.max) {
    return fail(ErrorCode::invalid_argument, fmt::format("{} {}: want a number from {} to {}", what,
                                                         quote(text), limits.min, limits.max));
  }
  return value;
}

Result<std::vector<TokenId>> parse_token_ids(std::string_view text, std::string_view what) {
  constexpr Limits<std::int64_t> kIdLimits{0, std::numeric_limits<TokenId>::max()};
  std::vector<TokenId> token_ids;
  bool after_comma = true;  // an id must follow: at the start and after each comma
  std::size_t at = 0;
  while (at < text.size()) {
    if (is_separator(text[at])) {
      if (text[at] == ',') {
        if (after_comma) {
          return fail(ErrorCode::invalid_argument,
                      fmt::format("{}: empty id at index {}", what, token_ids.size()));
        }
        after_comma = true;
      }
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && !is_separator(text[end])) {
      ++end;
    }
    if (static_cast<std::int64_t>(token_ids.size()) == kPromptTokensMax) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{}: more than {} ids", what, kPromptTokensMax));
    }
    const std::string name = fmt::format("{}: id at index {}:", what, token_ids.size());
    token_ids.push_back(static_cast<TokenId>(
        SLUICE_TRY(parse_integer(text.substr(at, end - at), kIdLimits, name))));
    after_comma = false;
    at = end;
  }
  if (after_comma) {
    return fail(ErrorCode::invalid_argument, token_ids.empty()
                                                 ? fmt::format("{}: no token ids", what)
                                                 : fmt::format("{}: ends with a comma", what));
  }
  return token_ids;
}

Result<void> check_token_ids(const std::vector<TokenId>& token_ids, std::int64_t vocab_size,
                             std::string_view what) {
  for (std::size_t i = 0; i < token_ids.size(); ++i) {
    if (token_ids[i] < 0 || token_ids[i] >= vocab_size) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{}: id {} at index {} is outside the vocabulary [0, {})", what,
                              token_ids[i], i, vocab_size));
    }
  }
  return {};
}

void check_integer(CLI::Option& option, Limits<std::int64_t> limits) {
  option.check(validator([limits](std::string_view text) -> Result<void> {
    SLUICE_TRY(parse_integer(text, limits, "value"));
    return {};
  }));
}

void check_number(CLI::Option& option, Limits<double> limits) {
  option.check(validator([limits](std::string_view text) -> Result<void> {
    SLUICE_TRY(parse_number(text, limits, "value"));
    return {};
  }));
}

void add_preset_option(CLI::App& command, std::optional<WeightPreset>& preset) {
  std::vector<std::string> names;
  names.reserve(kWeightPresets.size());
  for (const WeightPreset known : kWeightPresets) {
    names.emplace_back(to_string(known));
  }
  command
      .add_option_function<std::string>(
          "--preset",
          [&preset](const std::string& name) { preset = weight_preset_from_name(name); },
          "How weights are held: narrower is faster, smaller and less exact")
      ->check(CLI::IsMember(names));
}

void add_runtime_options(CLI::App& command, RuntimeOptions& options, bool model_required) {
  auto* model =
      command.add_option("MODEL", options.model,
                         model_required ? "Directory of the model (config.json, *.safetensors)"
                                        : "Directory of the model; without it the embedded one");
  model->type_name("");
  if (model_required) {
    model->required();
  }
  check_integer(
      *command.add_option("--threads", options.threads, "Compute threads; 0: all CPUs available")
           ->type_name("N"),
      {0, kThreadsMax});
  add_preset_option(command, options.preset);
  command.add_flag("-q,--quiet", options.quiet, "No start-up lines and no progress on stderr");
}

}  // namespace sluice::apps
