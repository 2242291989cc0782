#include "apps/serve.h"

#include <fmt/format.h>
#include <spdlog/async.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "apps/cache_over_restarts.h"
#include "apps/embedded_model.h"
#include "apps/model_loader.h"
#include "apps/pictures.h"
#include "apps/serve_options.h"
#include "apps/served_model_facts.h"
#include "apps/signal_watch.h"
#include "apps/version.h"
#include "platform/mapped_file.h"
#include "server/http_server.h"

namespace sluice::apps {
namespace {

constexpr std::int64_t kDefaultContext = 8192;
constexpr std::int64_t kScoreStep = 64;  // prompt tokens scored in one step
constexpr std::size_t kKeyFileBytesMax = std::size_t{1} << 20;
constexpr std::size_t kBodiesAtOnce = 4;  // largest ones, in memory

// One key per line, "KEY" or "KEY context=N"; empty lines do not count.
Result<void> add_keys_from_file(const std::string& path, ServerConfig& config) {
  const std::string text = SLUICE_TRY(read_text_file(path, kKeyFileBytesMax));
  const std::size_t given = config.api_keys.size();
  std::istringstream lines(text);
  std::string line;
  for (std::int64_t number = 1; std::getline(lines, line); ++number) {
    if (line.ends_with('\r')) {
      line.pop_back();
    }
    constexpr std::string_view kContext = " context=";
    if (const std::size_t at = line.find(kContext); at != std::string::npos) {
      const std::int64_t tokens = SLUICE_TRY(
          parse_integer(std::string_view(line).substr(at + kContext.size()), {2, kPromptTokensMax},
                        fmt::format("--api-key-file {}: line {}: context", path, number)));
      line.resize(at);
      config.key_context_max[line] = tokens;
    }
    if (!line.empty()) {
      config.api_keys.push_back(line);
    }
  }
  if (config.api_keys.size() == given) {
    return fail(ErrorCode::invalid_argument, fmt::format("--api-key-file {}: no keys", path));
  }
  return {};
}

Result<ServerConfig> make_server_config(const ServeOptions& options) {
  ServerConfig config = options.server;
  config.body_bytes_max = static_cast<std::size_t>(options.body_mib_max) << 20;
  config.body_bytes_total = options.body_memory_mib > 0
                                ? static_cast<std::size_t>(options.body_memory_mib) << 20
                                : kBodiesAtOnce * config.body_bytes_max;
  config.cache_dir = options.cache_dir;
  config.media.picture.encoded_bytes_max = static_cast<std::size_t>(options.image_mib_max) << 20;
  config.media.video.encoded_bytes_max = config.media.picture.encoded_bytes_max;
  config.media.decoded_bytes_max = static_cast<std::size_t>(options.pixel_mib) << 20;
  config.media.picture.pixels_max = options.image_megapixels_max << 20;
  if (!config.media.root.empty()) {
    std::error_code error;
    config.media.root = std::filesystem::canonical(config.media.root, error);
    if (error) {
      return fail(ErrorCode::io, fmt::format("--media-root {}: {}",
                                             options.server.media.root.string(), error.message()));
    }
  }
  if (config.body_bytes_total < config.body_bytes_max) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("--body-memory {}: the largest body alone takes {} MiB (--max-body)",
                            options.body_memory_mib, options.body_mib_max));
  }
  for (const auto& [option, keys] :
       {std::pair("--api-key", &config.api_keys), std::pair("--admin-key", &config.admin_keys)}) {
    if (std::ranges::find(*keys, std::string()) != keys->end()) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{}: an empty key protects nothing", option));
    }
  }
  if (!options.api_key_file.empty()) {
    SLUICE_TRY(add_keys_from_file(options.api_key_file, config));
  }
  return config;
}

Result<void> check_text_side(const std::filesystem::path& directory, const TextSide& text) {
  if (text.tokenizer && text.chat_template) {
    return {};
  }
  return fail(ErrorCode::unsupported,
              fmt::format("{}: no {}, which serving text needs", directory.string(),
                          text.tokenizer ? "chat template" : "tokenizer.json"));
}

// How pictures come into prompts; none where the model, or the operator, wants text only. Errors:
// unsupported (the tokenizer has other placeholders than the model), and those of its files.
Result<std::optional<VisionModel>> load_vision_model(const ServeOptions& options,
                                                     const std::filesystem::path& directory,
                                                     const ModelConfig& config,
                                                     const Tokenizer& tokenizer) {
  if (!config.vision || options.no_vision) {
    return std::nullopt;
  }
  for (const auto& [word, id] : {std::pair("<|image_pad|>", config.image_token_id),
                                 std::pair("<|video_pad|>", config.video_token_id)}) {
    const auto known = tokenizer.token_id(word);
    if (known != id) {
      return fail(
          ErrorCode::unsupported,
          fmt::format("{}: {} is token {} in config.json and {} in tokenizer.json; with "
                      "--no-vision the model can be served",
                      directory.string(), word, id, known ? std::to_string(*known) : "no token"));
    }
  }
  return VisionModel{
      .placeholders = {.image = config.image_token_id, .video = config.video_token_id},
      .preprocessor = SLUICE_TRY(load_preprocessor_config(directory))};
}

// `text` has passed check_text_side().
ServedModel make_served_model(const ServeOptions& options, const std::filesystem::path& directory,
                              const LoadedModel& loaded, TextSide text,
                              std::optional<VisionModel> vision) {
  return ServedModel{
      .tokenizer = std::move(*text.tokenizer),
      .chat_template = std::move(*text.chat_template),
      .generation = std::move(text.generation),
      .id = options.name.empty() ? model_name(directory) : options.name,
      .aliases = options.aliases,
      .created = model_created(directory),
      .quantisation =
          std::string(loaded.preset() == WeightPreset::bf16 ? "none" : to_string(loaded.preset())),
      .fingerprint = model_fingerprint(loaded.checkpoint(), loaded.preset()),
      .cache_identity = cache_identity(loaded.checkpoint(), loaded.preset(), loaded.table().name),
      .vision = std::move(vision),
      .version = version(),
      .build = version()};
}

// The server on a thread of its own, from before the model is loaded until it has drained.
class BackgroundServer {
 public:
  BackgroundServer(HttpServer& server, SignalWatch& watch)
      : server_(server), watch_(watch), thread_([this] {
          server_.run();
          ended_.store(true);
          watch_.wake();
        }) {}
  ~BackgroundServer() {
    for (int i = 0; i < 3; ++i) {  // at once, where it still runs
      server_.stop();
    }
    thread_.join();
  }
  BackgroundServer(const BackgroundServer&) = delete;
  BackgroundServer& operator=(const BackgroundServer&) = delete;

  // The first signal drains, the second closes at once. How many came.
  int serve_until_signal() {
    fmt::print("listening on {}\n", server_.url());
    std::fflush(stdout);
    int signals = 0;
    while (!ended_.load()) {
      watch_.wait();
      if (watch_.take_signal()) {
        ++signals;
        spdlog::info("stopping: running answers may finish; a second signal closes at once");
        server_.stop();
      }
    }
    return signals;
  }

 private:
  HttpServer& server_;
  SignalWatch& watch_;
  std::atomic<bool> ended_{false};
  std::thread thread_;  // uses everything above
};

Result<int> run_serve(const ServeOptions& options) {
  // stdout is for the address alone, so that scripts can wait for it.
  // A log nobody reads must not stop the server: lines are written by a thread of their own, the
  // oldest are dropped when it falls behind, and a closed pipe is not a signal.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  spdlog::set_default_logger(
      spdlog::create_async_nb<spdlog::sinks::stderr_color_sink_mt>("sluice"));
  spdlog::set_level(spdlog::level::from_str(options.log_level));
  const std::filesystem::path directory = options.runtime.model.empty()
                                              ? SLUICE_TRY(find_embedded_model())
                                              : std::filesystem::path(options.runtime.model);
  const ModelConfig config = SLUICE_TRY(load_model_config(directory));
  const ServerConfig server_config = SLUICE_TRY(make_server_config(options));
  SLUICE_TRY(check_cache_options(options));
  TextSide text = SLUICE_TRY(load_text_side(directory, config));
  SLUICE_TRY(check_text_side(directory, text));
  auto vision = SLUICE_TRY(load_vision_model(options, directory, config, *text.tokenizer));

  EngineConfig engine_config = options.engine;
  engine_config.context_max =
      SLUICE_TRY(choose_context(options.engine.context_max, kDefaultContext, config));
  engine_config.sampled_vocab_size = sampled_vocab_size(text, config);
  engine_config.score_step_max = kScoreStep;
  engine_config.picture_bytes = static_cast<std::size_t>(options.picture_mib) << 20;
  engine_config.reuse_bytes = static_cast<std::size_t>(options.cache_mib) << 20;
  const ModelOptions model_options{
      .step_tokens_max = engine_config.prefill_step_max + engine_config.sequences_max,
      .step_logit_rows_max = engine_config.sequences_max + engine_config.score_step_max,
      .vision_patches_max =
          vision ? vision_patches_max(vision->preprocessor, engine_config.context_max) : 0};
  SLUICE_TRY(plan_memory(engine_config, CacheLayout::of(config), model_options, config.vocab_size));
  // Everything that can be wrong with the options is found before the weights are read.
  const std::unique_ptr<LoadedModel> loaded =
      SLUICE_TRY(LoadedModel::open(directory, config, options.runtime));
  const ServedModel served =
      make_served_model(options, directory, *loaded, std::move(text), std::move(vision));
  std::unique_ptr<Engine> engine;
  const std::unique_ptr<HttpServer> server =
      SLUICE_TRY(HttpServer::create(server_config, engine_config, served));
  const std::unique_ptr<SignalWatch> watch = SLUICE_TRY(SignalWatch::start());
  BackgroundServer background(*server, *watch);
  spdlog::info("{} is open; the model is loading", server->url());
  SLUICE_TRY(loaded->load_weights(model_options, [&](std::size_t done, std::size_t total) {
    if (watch->take_signal()) {  // nothing is answered yet, nothing is lost
      spdlog::info("stopping before the model is loaded");
      spdlog::shutdown();
      std::_Exit(kExitSuccess);
    }
    server->set_progress(total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0.0);
  }));
  engine = SLUICE_TRY(start_engine(loaded->model(), engine_config, options.runtime.quiet));
  const CacheFile cache_file{.path = server_config.cache_dir / options.cache_file,
                             .identity = served.cache_identity};
  if (!options.cache_file.empty()) {
    load_cache_at_start(*engine, cache_file);
  }
  server->set_engine(*engine);
  const int signals = background.serve_until_signal();
  if (!options.cache_file.empty() && signals <= 1) {
    save_cache_at_end(*engine, cache_file);
  } else if (!options.cache_file.empty()) {
    spdlog::info("kept prefixes: not saved, as a second signal came");
  }
  return kExitSuccess;
}

}  // namespace

void add_serve_command(CLI::App& program, Action& action) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command =
      program.add_subcommand("serve", "Serve a model over HTTP (OpenAI and Anthropic APIs)");
  add_serve_options(*command, *options);
  command->callback([options, &action] { action = [options] { return run_serve(*options); }; });
}

}  // namespace sluice::apps
