#include "apps/bench_url.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "apps/console.h"
#include "apps/progress_bar.h"
#include "apps/signal_watch.h"
#include "base/clock.h"
#include "client/http_client.h"
#include "client/model_list.h"
#include "load/load_report.h"
#include "load/load_runner.h"
#include "load/trace.h"
#include "load/workload.h"
#include "platform/mapped_file.h"

namespace sluice::apps {
namespace {

constexpr std::int64_t kRequestsDefault = 100;
constexpr std::int64_t kOpenUsersDefault = 256;
constexpr std::int64_t kTurnsDefault = 4;
constexpr std::int64_t kResultWordsDefault = 150;
constexpr std::int64_t kWordsMax = 1 << 20;
constexpr std::int64_t kTurnsMax = 1000;
constexpr std::size_t kTraceBytesMax = std::size_t{1} << 30;
constexpr double kSecondsMax = 1e6;
constexpr double kMilliseconds = 1e-3;

// A load and how it is to be played.
struct Load {
  load::ConversationSource next;
  load::LoadOptions options;
  std::size_t requests = 0;  // of a trace; 0: no end of its own
  std::string name;
  bool is_open = false;
};

load::WorkloadOptions workload_of(const BenchUrlOptions& options) {
  const load::WorkloadKind kind = load::workload_from_name(options.workload).value();
  constexpr std::int64_t kPageWords = 400;
  constexpr std::int64_t kMessageWords = 40;
  const bool is_agent = kind == load::WorkloadKind::agent;
  return {.kind = kind,
          .seed = options.seed,
          .turns = options.turns.value_or(kTurnsDefault),
          .system_words = options.system_words.value_or(is_agent ? kPageWords : kMessageWords),
          .prompt_words = options.prompt_words.value_or(
              kind == load::WorkloadKind::prompts ? kPageWords : kMessageWords),
          .result_words = options.result_words.value_or(kResultWordsDefault),
          .max_tokens = options.max_tokens};
}

load::ConversationSource generated(const BenchUrlOptions& options) {
  struct State {
    load::WorkloadOptions workload;
    std::optional<load::Arrivals> arrivals;
    std::uint64_t number = 0;
  };
  auto state = std::make_shared<State>();
  state->workload = workload_of(options);
  if (options.rate) {
    state->arrivals.emplace(*options.rate, options.seed);
  }
  return [state]() -> std::optional<load::PlannedConversation> {
    return load::PlannedConversation{
        .conversation = load::make_conversation(state->workload, state->number++),
        .at = state->arrivals ? std::optional(state->arrivals->next()) : std::nullopt};
  };
}

load::ConversationSource recorded(load::Trace trace) {
  struct State {
    std::vector<load::PlannedConversation> conversations;
    std::size_t next = 0;
  };
  auto state = std::make_shared<State>(State{.conversations = std::move(trace.conversations)});
  return [state]() -> std::optional<load::PlannedConversation> {
    if (state->next == state->conversations.size()) {
      return std::nullopt;
    }
    return std::move(state->conversations[state->next++]);
  };
}

// What would be typed in vain.
Result<void> check_combination(const BenchUrlOptions& options) {
  const auto refuse = [&options](const char* flag) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} means nothing to --workload {}", flag, options.workload));
  };
  const bool is_prompts = options.workload == "prompts";
  if (is_prompts && options.turns) {
    return refuse("--turns");
  }
  if (is_prompts && options.system_words) {
    return refuse("--system-tokens");
  }
  if (options.workload != "agent" && options.result_words) {
    return refuse("--result-words");
  }
  return {};
}

Result<Load> plan(const BenchUrlOptions& options) {
  SLUICE_TRY(check_combination(options));
  Load load;
  Result<ServerUrl> url = parse_server_url(options.url);
  if (!url) {
    url.error().message = "--url: " + url.error().message;
  }
  load.options.url = SLUICE_TRY(std::move(url));
  load.options.silence_seconds = options.timeout_seconds;
  load.options.api_key = options.api_key;
  load.options.seconds_max = options.seconds.value_or(std::numeric_limits<double>::infinity());
  load.is_open = options.rate.has_value() || !options.trace.empty();
  load.options.users = options.concurrency.value_or(load.is_open ? kOpenUsersDefault : 1);
  if (!options.trace.empty()) {
    const std::string text = SLUICE_TRY(read_text_file(options.trace, kTraceBytesMax));
    load::Trace trace = SLUICE_TRY(load::parse_trace(text, options.trace));
    load.requests = trace.requests;
    load.options.users =
        std::min(load.options.users, static_cast<std::int64_t>(trace.conversations.size()));
    load.options.requests_max =
        std::min(options.requests.value_or(load::kRequestsMax), load::kRequestsMax);
    load.name = "trace " + options.trace;
    load.next = recorded(std::move(trace));
    return load;
  }
  load.options.requests_max =
      options.requests.value_or(options.seconds ? load::kRequestsMax : kRequestsDefault);
  load.options.users = std::min(load.options.users, load.options.requests_max);
  load.name = fmt::format(
      "{}{}, seed {}", options.workload,
      options.rate ? fmt::format(" at {:g} conversations/s", *options.rate) : std::string(),
      options.seed);
  load.next = generated(options);
  return load;
}

Result<std::string> model_of(const BenchUrlOptions& options, const load::LoadOptions& load) {
  if (!options.model.empty()) {
    return options.model;
  }
  HttpClient client(load.url, {.silence_seconds = load.silence_seconds, .api_key = load.api_key});
  const Result<boost::json::object> model = first_model(client);
  if (!model) {
    return fail(model.error().code,
                fmt::format("--url {}: {}", options.url, model.error().message));
  }
  return std::string(model->at("id").get_string());
}

// Plays the load on a thread of its own, while this one waits for Ctrl-C.
Result<load::LoadRun> play(const Load& load, bool quiet, bool& interrupted) {
  const std::unique_ptr<SignalWatch> watch = SLUICE_TRY(SignalWatch::start());
  const SteadyClock clock;
  std::atomic<bool> stop = false;
  std::atomic<bool> finished = false;
  load::LoadRun run;
  // Requests when their number is known, else seconds.
  const std::size_t total =
      load.requests > 0
          ? std::min(load.requests, static_cast<std::size_t>(load.options.requests_max))
          : static_cast<std::size_t>(load.options.requests_max);
  const bool by_time = std::isfinite(load.options.seconds_max);
  ProgressBar bar("asking", by_time ? "seconds" : "requests", !quiet);
  const load::LoadProgress progress = [&](std::int64_t done, double seconds) {
    bar.update(static_cast<std::size_t>(by_time ? seconds : static_cast<double>(done)),
               by_time ? static_cast<std::size_t>(std::ceil(load.options.seconds_max)) : total);
  };
  std::jthread player([&] {
    run = load::run_load(load.options, load.next, clock, stop, progress);
    finished.store(true);
    watch->wake();
  });
  while (!finished.load()) {
    watch->wait();
    if (watch->take_signal()) {
      interrupted = true;
      stop.store(true);
    }
  }
  player.join();
  return run;
}

// Returns --trace.
CLI::Option* add_load_options(CLI::App& command, BenchUrlOptions& options,
                              std::vector<CLI::Option*>& added) {
  const auto add = [&](const char* name, auto& value, const std::string& what, const char* type) {
    added.push_back(command.add_option(name, value, what)->type_name(type));
    return added.back();
  };
  add("--model", options.model, "Model to ask; without it the first of /v1/models", "NAME");
  add("--api-key", options.api_key, "Sent as a bearer token", "KEY");
  CLI::Option* workload =
      add("--workload", options.workload, "chat, agent or prompts (chat)", "NAME")
          ->check(CLI::IsMember({"chat", "agent", "prompts"}));
  CLI::Option* trace =
      add("--trace", options.trace, "Requests recorded in a file, instead of a workload", "FILE");
  trace->excludes(workload);
  check_integer(*add("--concurrency", options.concurrency,
                     "Requests in flight at most; without --rate and --trace so many users who "
                     "wait for each answer (1)",
                     "N"),
                {1, load::kUsersMax});
  check_number(
      *add("--rate", options.rate, "Conversations that begin a second, whatever happens", "R")
           ->excludes(trace),
      {1e-3, 1e4});
  check_integer(*add("--requests", options.requests,
                     fmt::format("Requests in all ({} without --seconds)", kRequestsDefault), "N"),
                {1, load::kRequestsMax});
  check_number(*add("--seconds", options.seconds, "Nothing is sent after that time", "S"),
               {0.1, kSecondsMax});
  check_number(*add("--timeout", options.timeout_seconds,
                    "Silence of the server that ends a request (600)", "S"),
               {0.1, kSecondsMax});
  check_number(*add("--slo-ttft", options.slo_ttft_ms,
                    "Goodput: answers whose first token came within so many ms", "MS"),
               {0, kSecondsMax});
  check_number(*add("--slo-itl", options.slo_itl_ms,
                    "Goodput: answers with at most so many ms between tokens, on average", "MS"),
               {0, kSecondsMax});
  return trace;
}

void add_workload_options(CLI::App& command, BenchUrlOptions& options, CLI::Option* trace,
                          std::vector<CLI::Option*>& added) {
  const auto add = [&](const char* name, auto& value, const char* what,
                       Limits<std::int64_t> limits) {
    added.push_back(command.add_option(name, value, what)->type_name("N"));
    check_integer(*added.back(), limits);
    added.back()->excludes(trace);
  };
  add("--seed", options.seed, "Decides every word and arrival (1)",
      {0, std::numeric_limits<std::int64_t>::max()});
  add("--turns", options.turns, "Requests of a conversation (4)", {1, kTurnsMax});
  add("--system-tokens", options.system_words,
      "Words of the system prompt that all share (agent 400, chat 40)", {0, kWordsMax});
  add("--prompt-words", options.prompt_words,
      "Words of a first message, about (prompts 400, else 40)", {1, kWordsMax});
  add("--result-words", options.result_words, "Words of a tool's result, about (150)",
      {1, kWordsMax});
  add("--max-tokens", options.max_tokens, "Tokens of an answer at most (128)", {1, kWordsMax});
}

}  // namespace

std::shared_ptr<const BenchUrlOptions> add_bench_url_options(CLI::App& command) {
  auto options = std::make_shared<BenchUrlOptions>();
  const std::vector<const CLI::Option*> others = std::as_const(command).get_options();
  CLI::Option* url = command.add_option(
      "--url", options->url, "Instead: load a server, http(s)://HOST[:PORT], with many requests");
  url->type_name("URL");
  for (const CLI::Option* other : others) {
    const std::string name = other->get_name();
    if (name != "--help" && name != "--quiet" && name != "--json") {
      url->excludes(command.get_option(name));
    }
  }
  std::vector<CLI::Option*> added;
  CLI::Option* trace = add_load_options(command, *options, added);
  add_workload_options(command, *options, trace, added);
  for (CLI::Option* option : added) {
    option->needs(url)->group("With --url");
  }
  return options;
}

Result<int> run_bench_url(const BenchUrlOptions& options, bool json, bool quiet) {
  Load load = SLUICE_TRY(plan(options));
  load.options.model = SLUICE_TRY(model_of(options, load.options));
  bool interrupted = false;
  const load::LoadRun run = SLUICE_TRY(play(load, quiet, interrupted));
  const auto seconds = [](std::optional<double> milliseconds) {
    return milliseconds ? std::optional(*milliseconds * kMilliseconds) : std::nullopt;
  };
  load::LoadReport report =
      load::make_report(run, {.first_token_seconds = seconds(options.slo_ttft_ms),
                              .inter_token_seconds = seconds(options.slo_itl_ms)});
  report.url = options.url;
  report.model = load.options.model;
  report.workload = load.name;
  report.loop = load.is_open ? "open" : "closed";
  report.users = load.options.users;
  fmt::print("{}{}", json ? load::to_json(report) : load::to_text(report), json ? "\n" : "");
  if (report.answered > 0) {
    return kExitSuccess;
  }
  if (interrupted) {
    return kExitInterrupted;
  }
  print_note("sluice: error: --url {}: not one request was answered\n", options.url);
  return kExitError;
}

}  // namespace sluice::apps
