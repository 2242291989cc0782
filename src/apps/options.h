// Strict reading of what was typed: numbers, token ids, and the options that every command with a
// model shares. What looks almost like a number is an error, never a number.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "request/request.h"
#include "weights/weight_preset.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sluice::apps {

template <typename T>
struct Limits {
  T min;
  T max;
};

// Decimal digits with an optional minus sign; no spaces, plus signs, leading zeros, hex or octal.
// `what` names the option in the Error (invalid_argument), which also has the text and the limits.
Result<std::int64_t> parse_integer(std::string_view text, Limits<std::int64_t> limits,
                                   std::string_view what);

// A finite decimal number ("0.7", "1", "1e-3").
Result<double> parse_number(std::string_view text, Limits<double> limits, std::string_view what);

// "1,2,3": ids >= 0 separated by commas or white space (a file may have one per line). At least
// one, at most kPromptTokensMax. The Error names the index of the bad id.
Result<std::vector<TokenId>> parse_token_ids(std::string_view text, std::string_view what);

inline constexpr std::int64_t kPromptTokensMax = 1 << 20;
inline constexpr std::int64_t kThreadsMax = 1024;
inline constexpr std::int64_t kSequencesMax = 1024;
inline constexpr std::int64_t kStepTokensMax = 8192;  // rows of one forward pass

// Ids must be rows of the embedding. Error invalid_argument with index, id and vocab_size.
Result<void> check_token_ids(const std::vector<TokenId>& token_ids, std::int64_t vocab_size,
                             std::string_view what);

// Attach the parsers above to an option; a bad value becomes a usage error.
void check_integer(CLI::Option& option, Limits<std::int64_t> limits);
void check_number(CLI::Option& option, Limits<double> limits);

// What a chosen command does, as its exit code. Set by the command's option parser.
using Action = std::function<Result<int>()>;

inline constexpr int kExitSuccess = 0;
inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;  // 128 + SIGINT, as shells report it

// Options of every command that loads a model.
struct RuntimeOptions {
  std::string model;                   // directory of the checkpoint
  std::optional<WeightPreset> preset;  // none: as the directory has them
  std::int64_t threads = 0;            // 0: all CPUs this process may use
  bool quiet = false;                  // no start-up lines and no progress bar
};

// --preset NAME, one of those that run.
void add_preset_option(CLI::App& command, std::optional<WeightPreset>& preset);

// model_required: MODEL must be given (otherwise empty means the embedded model).
void add_runtime_options(CLI::App& command, RuntimeOptions& options, bool model_required);

}  // namespace sluice::apps
