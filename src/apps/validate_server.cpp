#include "apps/validate_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/model_loader.h"
#include "apps/serve_child.h"
#include "validate/filler_text.h"
#include "validate/server_checks.h"
#include "weights/model_config.h"

namespace sluice::apps {
namespace {

using validate::AskedServer;
using validate::Check;
using validate::CheckRun;

constexpr std::int64_t kContextSpare = 512;  // beyond the longest text that is asked about
constexpr std::int64_t kSequences = 16;      // of the check `cache`, at once

void skip_all(CheckRun& run, bool of_server, const std::string& why) {
  for (const validate::CheckInfo& info : validate::all_checks()) {
    if (info.needs_server == of_server) {
      run.skip(info.id, why);
    }
  }
}

bool wants_server(const CheckRun& run) {
  return std::ranges::any_of(validate::all_checks(), [&](const validate::CheckInfo& info) {
    return info.needs_server && run.wants(info.id);
  });
}

bool files_are_broken(const validate::Report& report) {
  return std::ranges::any_of(report.checks, [](const Check& check) {
    return check.id == "artifact" && check.outcome == validate::Outcome::fail;
  });
}

Result<void> run_server_checks(CheckRun& run, AskedServer& server, const ValidateOptions& options) {
  validate::Report& report = run.report();
  report.model.insert(report.model.end(), server.facts().begin(), server.facts().end());
  const validate::ServerCheckOptions checks{
      .bytes_per_token = SLUICE_TRY(validate::FillerText::measure(server)),
      .seed = options.exactness.seed,
      .cache_tokens = options.cache_tokens,
      .rate_tokens = options.rate_tokens,
      .quick = options.quick};
  run.run("needles", [&](Check& check) {
    return validate::check_needles(server, checks, options.needle_tokens, check);
  });
  run.run("cache", [&](Check& check) { return validate::check_cache(server, checks, check); });
  run.run("rates", [&](Check& check) {
    return validate::check_rates(server, checks, check, report.plots, report.bars);
  });
  run.run("gaps", [&](Check& check) { return validate::check_gaps(server, checks, check); });
  return {};
}

std::vector<std::string> serve_arguments(const std::filesystem::path& directory,
                                         const ModelConfig& config,
                                         const ValidateOptions& options) {
  const std::int64_t longest = std::max({options.needle_tokens.back(), options.rate_tokens.back(),
                                         validate::cache_context(options.cache_tokens)});
  const std::int64_t context = std::min(longest + kContextSpare, config.max_position_embeddings);
  const std::int64_t together = kSequences * (options.cache_tokens + kContextSpare);
  std::vector<std::string> arguments{std::filesystem::absolute(directory).string(),
                                     "--host",
                                     "127.0.0.1",
                                     "--no-vision",
                                     "--context",
                                     std::to_string(context),
                                     "--kv-tokens",
                                     std::to_string(std::max(2 * context, together)),
                                     "--cache-memory",
                                     std::to_string(options.memory_mib),
                                     "--sequences",
                                     std::to_string(kSequences)};
  if (options.runtime.threads != 0) {
    arguments.insert(arguments.end(), {"--threads", std::to_string(options.runtime.threads)});
  }
  if (options.runtime.preset) {
    arguments.insert(arguments.end(),
                     {"--preset", std::string(to_string(*options.runtime.preset))});
  }
  return arguments;
}

}  // namespace

Result<void> run_checks_on_child(CheckRun& run, const std::filesystem::path& directory,
                                 const ValidateOptions& options) {
  if (!wants_server(run)) {
    return {};
  }
  if (files_are_broken(run.report())) {
    skip_all(run, true, "the model files are broken");
    return {};
  }
  const ModelConfig config = SLUICE_TRY(load_model_config(directory));
  const TextSide text = SLUICE_TRY(load_text_side(directory, config));
  if (!text.tokenizer || !text.chat_template) {
    skip_all(run, true, "the model has no tokenizer or no chat template: it cannot be served");
    return {};
  }
  const std::unique_ptr<ServeChild> child =
      SLUICE_TRY(ServeChild::start(serve_arguments(directory, config, options)));
  AskedServer server = SLUICE_TRY(AskedServer::connect(child->url(), "", run.clock()));
  return run_server_checks(run, server, options);
}

Result<void> run_checks_on_url(CheckRun& run, const ValidateOptions& options) {
  skip_all(run, false, "needs the model in this process");
  AskedServer server = SLUICE_TRY(AskedServer::connect(options.url, options.api_key, run.clock()));
  return run_server_checks(run, server, options);
}

}  // namespace sluice::apps
