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
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "apps/embedded_model.h"
#include "apps/model_loader.h"
#include "apps/served_model_facts.h"
#include "apps/signal_watch.h"
#include "apps/version.h"
#include "platform/mapped_file.h"
#include "server/http_server.h"

namespace sluice::apps {
namespace {

constexpr std::int64_t kDefaultContext = 8192;
constexpr std::size_t kKeyFileBytesMax = std::size_t{1} << 20;

struct ServeOptions {
  RuntimeOptions runtime;
  ServerConfig server;
  EngineConfig engine = {.context_max = 0};  // 0: kDefaultContext, or what the model has
  std::string name;                          // empty: that of the directory
  std::vector<std::string> aliases;
  std::string api_key_file;
  std::int64_t body_mib_max = 128;
  std::int64_t cache_mib = 2048;
  std::string log_level = "info";
};

// One key per line; empty lines do not count.
Result<void> add_keys_from_file(const std::string& path, std::vector<std::string>& keys) {
  const std::string text = SLUICE_TRY(read_text_file(path, kKeyFileBytesMax));
  const std::size_t given = keys.size();
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (!line.empty()) {
      keys.emplace_back(line);
    }
  }
  if (keys.size() == given) {
    return fail(ErrorCode::invalid_argument, fmt::format("--api-key-file {}: no keys", path));
  }
  return {};
}

Result<ServerConfig> make_server_config(const ServeOptions& options) {
  ServerConfig config = options.server;
  config.body_bytes_max = static_cast<std::size_t>(options.body_mib_max) << 20;
  for (const auto& [option, keys] :
       {std::pair("--api-key", &config.api_keys), std::pair("--admin-key", &config.admin_keys)}) {
    if (std::ranges::find(*keys, std::string()) != keys->end()) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{}: an empty key protects nothing", option));
    }
  }
  if (!options.api_key_file.empty()) {
    SLUICE_TRY(add_keys_from_file(options.api_key_file, config.api_keys));
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

// `text` has passed check_text_side().
ServedModel make_served_model(const ServeOptions& options, const std::filesystem::path& directory,
                              const Checkpoint& checkpoint, TextSide text) {
  return ServedModel{.tokenizer = std::move(*text.tokenizer),
                     .chat_template = std::move(*text.chat_template),
                     .generation = std::move(text.generation),
                     .id = options.name.empty() ? model_name(directory) : options.name,
                     .aliases = options.aliases,
                     .created = model_created(directory),
                     .quantisation = "none",
                     .fingerprint = model_fingerprint(checkpoint),
                     .version = version(),
                     .build = version()};
}

// Serves until a signal: the first drains, the second closes at once.
void serve_until_signal(HttpServer& server, SignalWatch& watch) {
  std::atomic<bool> ended{false};
  std::thread serving([&server, &watch, &ended] {
    server.run();
    ended.store(true);
    watch.wake();
  });
  fmt::print("listening on {}\n", server.url());
  std::fflush(stdout);
  while (!ended.load()) {
    watch.wait();
    if (watch.take_signal()) {
      spdlog::info("stopping: running answers may finish; a second signal closes at once");
      server.stop();
    }
  }
  serving.join();
}

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
  TextSide text = SLUICE_TRY(load_text_side(directory, config));
  SLUICE_TRY(check_text_side(directory, text));

  EngineConfig engine_config = options.engine;
  engine_config.context_max =
      SLUICE_TRY(choose_context(options.engine.context_max, kDefaultContext, config));
  engine_config.sampled_vocab_size = sampled_vocab_size(text, config);
  engine_config.reuse_bytes = static_cast<std::size_t>(options.cache_mib) << 20;
  const ModelOptions model_options{
      .step_tokens_max = engine_config.prefill_step_max + engine_config.sequences_max,
      .step_logit_rows_max = engine_config.sequences_max};
  SLUICE_TRY(plan_memory(engine_config, CacheLayout::of(config), model_options, config.vocab_size));
  const std::unique_ptr<LoadedModel> loaded =
      SLUICE_TRY(LoadedModel::load(directory, config, options.runtime, model_options));
  const ServedModel served =
      make_served_model(options, directory, loaded->checkpoint(), std::move(text));

  const std::unique_ptr<SignalWatch> watch = SLUICE_TRY(SignalWatch::start());
  const std::unique_ptr<Engine> engine =
      SLUICE_TRY(start_engine(loaded->model(), engine_config, options.runtime.quiet));
  const std::unique_ptr<HttpServer> server =
      SLUICE_TRY(HttpServer::create(server_config, *engine, served));
  serve_until_signal(*server, *watch);
  return kExitSuccess;
}

void add_engine_options(CLI::App& command, EngineConfig& engine) {
  check_integer(*command
                     .add_option("--context", engine.context_max,
                                 "Tokens of one sequence; 0: 8192, or what the model has")
                     ->type_name("N"),
                {0, kPromptTokensMax});
  check_integer(
      *command.add_option("--sequences", engine.sequences_max, "Sequences computed together")
           ->type_name("N")
           ->capture_default_str(),
      {1, kSequencesMax});
  check_integer(*command.add_option("--queue", engine.queue_max, "Requests waiting beyond those")
                     ->type_name("N")
                     ->capture_default_str(),
                {1, 65536});
  check_integer(*command
                     .add_option("--prefill-step", engine.prefill_step_max,
                                 "Prompt tokens of one step, over all sequences")
                     ->type_name("N")
                     ->capture_default_str(),
                {1, kStepTokensMax});
  check_integer(*command
                     .add_option("--prefill-beside-decode", engine.prefill_beside_decode_max,
                                 "The same while answers are written; 0: as many as keep the time "
                                 "between their tokens below 2.5 times the usual")
                     ->type_name("N")
                     ->capture_default_str(),
                {0, kStepTokensMax});
  check_integer(*command
                     .add_option("--kv-tokens", engine.kv_tokens_max,
                                 "Memory for the tokens of all running sequences; 0: the whole "
                                 "context of each; with less, the last to come may have to pause")
                     ->type_name("N"),
                {0, std::int64_t{1} << 32});
}

void add_server_options(CLI::App& command, ServeOptions& options) {
  ServerConfig& server = options.server;
  command.add_option("--host", server.host, "Address to listen on; 0.0.0.0 or :: for all")
      ->type_name("ADDRESS")
      ->capture_default_str();
  check_integer(*command.add_option("--port", server.port, "Port; 0: a free one")
                     ->type_name("N")
                     ->capture_default_str(),
                {0, 65535});
  check_integer(*command.add_option("--http-threads", server.threads, "Threads that run HTTP")
                     ->type_name("N")
                     ->capture_default_str(),
                {1, 64});
  command.add_option("--api-key", server.api_keys, "Key clients must send; may be repeated")
      ->type_name("KEY")
      ->allow_extra_args(false);
  command.add_option("--api-key-file", options.api_key_file, "File with one key per line")
      ->type_name("FILE");
  command
      .add_option("--admin-key", server.admin_keys,
                  "Key for /v1/cache; may be repeated; without one: only from this machine")
      ->type_name("KEY")
      ->allow_extra_args(false);
  command.add_flag("--public-metrics,!--no-public-metrics", server.public_info,
                   "Show /metrics and /version without a key (the default)");
  command
      .add_option("--cors-origin", server.cors_origins,
                  "Browser origin allowed beside loopback; may be repeated")
      ->type_name("ORIGIN")
      ->allow_extra_args(false);
  command
      .add_option("--allowed-host", server.allowed_hosts,
                  "Host name accepted beside loopback; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  check_integer(
      *command.add_option("--max-body", options.body_mib_max, "Largest request body in MiB")
           ->type_name("N")
           ->capture_default_str(),
      {1, 4096});
  check_integer(*command
                     .add_option("--sse-ping", server.ping_seconds,
                                 "Seconds of silence after which a stream gets a ping; 0: never")
                     ->type_name("N")
                     ->capture_default_str(),
                {0, 3600});
  check_integer(*command
                     .add_option("--drain", server.drain_seconds_max,
                                 "Seconds that running answers get when stopping")
                     ->type_name("N")
                     ->capture_default_str(),
                {0, 3600});
}

// What the APIs promise.
void add_api_options(CLI::App& command, ServerConfig& server) {
  command
      .add_option_function<std::string>(
          "--responses-store",
          [&server](const std::string& value) { server.responses_store = value == "on"; },
          "Keep responses for previous_response_id and GET: on or off")
      ->check(CLI::IsMember({"on", "off"}))
      ->default_str("on");
  command
      .add_option_function<std::string>(
          "--reasoning-format",
          [&server](const std::string& value) {
            server.chat.reasoning_format =
                parse_reasoning_format(value).value_or(server.chat.reasoning_format);
          },
          "Keys of reasoning in chat replies: both, reasoning_content, reasoning, or none (inline)")
      ->check(CLI::IsMember({"both", "reasoning_content", "reasoning", "none"}))
      ->default_str("both");
  command
      .add_option_function<std::string>(
          "--messages-thinking",
          [&server](const std::string& value) { server.messages.thinking.enabled = value == "on"; },
          "Thinking on /v1/messages when a request does not say: on or off")
      ->check(CLI::IsMember({"on", "off"}))
      ->default_str("off");
  command.add_flag("--enable-debug", server.debug, "Answer POST /debug/parse");
  command
      .add_option_function<std::vector<std::int64_t>>(
          "--effort-budgets",
          [&server](const std::vector<std::int64_t>& given) {
            const EffortBudgets budgets{.minimal = given[0], .low = given[1], .medium = given[2]};
            server.chat.thinking.budgets = budgets;
            server.messages.thinking.budgets = budgets;
          },
          "Reasoning tokens that the efforts minimal, low and medium stand for")
      ->type_name("N,N,N")
      ->delimiter(',')
      ->expected(3)
      ->check(CLI::Range(std::int64_t{1}, kTokensMaxMax))
      ->default_str("1024,4096,16384");
  command.add_flag("--strict-model", server.strict_model,
                   "Refuse requests that name another model");
}

}  // namespace

void add_serve_command(CLI::App& program, Action& action) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command =
      program.add_subcommand("serve", "Serve a model over HTTP (OpenAI and Anthropic APIs)");
  add_runtime_options(*command, options->runtime, false);
  command->add_option("--name", options->name, "Name of the model; default: of its directory")
      ->type_name("NAME");
  command->add_option("--alias", options->aliases, "Further name; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  add_engine_options(*command, options->engine);
  check_integer(*command
                     ->add_option("--cache-memory", options->cache_mib,
                                  "MiB for computed prefixes kept for later requests; 0: none")
                     ->type_name("N")
                     ->capture_default_str(),
                {0, std::int64_t{1} << 24});
  add_server_options(*command, *options);
  add_api_options(*command, options->server);
  command
      ->add_option("--log-level", options->log_level,
                   "What to log: info (each request), warning, error, off")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"info", "warning", "error", "off"}))
      ->capture_default_str();
  command->callback([options, &action] { action = [options] { return run_serve(*options); }; });
}

}  // namespace sluice::apps
