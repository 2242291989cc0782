#include "apps/serve_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "api/cache_files.h"
#include "apps/options.h"

namespace sluice::apps {
namespace {

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

void add_cache_options(CLI::App& command, ServeOptions& options) {
  check_integer(*command
                     .add_option("--cache-memory", options.cache_mib,
                                 "MiB for computed prefixes kept for later requests; 0: none")
                     ->type_name("N")
                     ->capture_default_str(),
                {0, std::int64_t{1} << 24});
  CLI::Option* directory =
      command
          .add_option("--cache-dir", options.cache_dir,
                      "Directory that POST /v1/cache/save and load use; without it they are off. "
                      "Its files hold what users wrote, and API keys")
          ->type_name("DIR");
  command
      .add_option("--cache-file", options.cache_file,
                  "File of --cache-dir to load kept prefixes from at the start, if it is there, "
                  "and to save them to after SIGTERM, once running answers have ended")
      ->type_name("NAME")
      ->needs(directory)
      ->check([](const std::string& name) {
        return is_cache_file_name(name) ? std::string()
                                        : fmt::format("'{}', want {}", name, kCacheFileNameRule);
      });
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
  command
      .add_option("--api-key-file", options.api_key_file,
                  "File with one key per line; \"KEY context=N\" gives a key less context")
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
  check_integer(
      *command
           .add_option("--body-memory", options.body_memory_mib,
                       "MiB that request bodies may take while they arrive, all together; "
                       "0: four of the largest")
           ->type_name("N"),
      {0, std::int64_t{1} << 24});
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

// Pictures and videos: whether, from where, how large.
void add_media_options(CLI::App& command, ServeOptions& options) {
  MediaConfig& media = options.server.media;
  command.add_flag("--no-vision", options.no_vision,
                   "Read text only, also where the model can see: less memory");
  command
      .add_option("--media-domains", media.domains,
                  "Host whose http(s) URLs of pictures are fetched; may be repeated; without one "
                  "none is")
      ->type_name("HOST")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--media-root", media.root,
                  "Directory below which file: URLs of pictures are read; without it none is")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
  check_integer(
      *command.add_option("--max-images", media.items_max, "Pictures and videos of one request")
           ->type_name("N")
           ->capture_default_str(),
      {1, 4096});
  check_integer(*command
                     .add_option("--max-image-size", options.image_mib_max,
                                 "Largest file of a picture or video in MiB")
                     ->type_name("N")
                     ->capture_default_str(),
                {1, 1024});
  check_integer(*command
                     .add_option("--max-image-pixels", options.image_megapixels_max,
                                 "Largest picture in units of 2^20 pixels, before it is resized "
                                 "for the model")
                     ->type_name("N")
                     ->capture_default_str(),
                {1, 1024});
  check_integer(*command
                     .add_option("--pixel-memory", options.pixel_mib,
                                 "MiB for the pixels of all requests that wait or run; more is "
                                 "answered with 429")
                     ->type_name("N")
                     ->capture_default_str(),
                {1, std::int64_t{1} << 20});
  check_integer(*command
                     .add_option("--picture-memory", options.picture_mib,
                                 "MiB for encoded pictures kept for later requests; 0: none")
                     ->type_name("N")
                     ->capture_default_str(),
                {0, std::int64_t{1} << 20});
}

// How conversations become prompts, and what requests leave open.
void add_conversation_options(CLI::App& command, ServerConfig& server) {
  command
      .add_option_function<std::string>(
          "--preserve-thinking",
          [&server](const std::string& value) {
            const PreserveThinking preserve = value == "on"     ? PreserveThinking::always
                                              : value == "auto" ? PreserveThinking::with_tools
                                                                : PreserveThinking::as_template;
            server.chat.conversation.preserve_thinking = preserve;
            server.messages.conversation.preserve_thinking = preserve;
          },
          "Reasoning of earlier turns stays in the prompt: template (as it decides), auto (where "
          "tools are declared), on; for templates that can")
      ->check(CLI::IsMember({"template", "auto", "on"}))
      ->default_str("template");
  command
      .add_option_function<std::string>(
          "--inline-system",
          [&server](const std::string& value) {
            server.chat.conversation.hoist_system = value == "hoist";
            server.messages.conversation.hoist_system = value == "hoist";
          },
          "System messages between turns: fold (they stay there, in a user turn) or hoist (they "
          "join the first, and every new one changes the head of the prompt)")
      ->check(CLI::IsMember({"fold", "hoist"}))
      ->default_str("fold");
  command
      .add_option_function<std::string>(
          "--overflow",
          [&server](const std::string& value) { server.reject_overflow = value == "reject"; },
          "max_tokens that does not fit behind the prompt: clamp or reject")
      ->check(CLI::IsMember({"clamp", "reject"}))
      ->default_str("clamp");
  command
      .add_option_function<std::string>(
          "--sampling-defaults",
          [&server](const std::string& value) {
            server.sampling = parse_sampling_defaults(value).value_or(server.sampling);
          },
          "Sampling of requests that leave it open, where the model's own values are not wanted: "
          R"({"thinking": {"temperature": 1.0}, "direct": {"temperature": 0.7}})")
      ->check([](const std::string& value) {
        const auto defaults = parse_sampling_defaults(value);
        return defaults ? std::string() : defaults.error().message;
      })
      ->type_name("JSON");
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
          "--tool-fence-guard",
          [&server](const std::string& value) { server.tool_fence_guard = value == "on"; },
          "Take calls inside ``` fences for text, unless they begin with the model's own token: on "
          "or off")
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
  add_conversation_options(command, server);
  check_integer(*command.add_option("--max-n", server.choices_max, "Answers to one prompt (`n`)")
                     ->type_name("N")
                     ->capture_default_str(),
                {1, 1024});
}

// What requests may not have.
void add_guard_options(CLI::App& command, ServerConfig& server) {
  command
      .add_option_function<std::string>(
          "--thinking",
          [&server](const std::string& value) {
            server.chat.thinking.enabled = value == "on";
            server.chat.thinking.forbidden = value == "forbid";
            server.messages.thinking.forbidden = value == "forbid";
          },
          "Thinking on the OpenAI paths when a request does not say: on or off; forbid: never, on "
          "any path, whatever requests say")
      ->check(CLI::IsMember({"on", "off", "forbid"}))
      ->default_str("on");
  check_integer(*command
                     .add_option("--max-new-tokens", server.answer_tokens_max,
                                 "Tokens of one answer, whatever max_tokens says; without it "
                                 "the rest of the context")
                     ->type_name("N"),
                {1, kTokensMaxMax});
  command
      .add_option_function<std::string>(
          "--raw-completions",
          [&server](const std::string& value) { server.raw_completions = value == "on"; },
          "Answer /v1/completions: on or off")
      ->check(CLI::IsMember({"on", "off"}))
      ->default_str("on");
  command.add_flag("--allow-client-template", server.client_templates,
                   "Let requests bring their own chat_template; else that is an error");
}

}  // namespace

void add_serve_options(CLI::App& command, ServeOptions& options) {
  add_runtime_options(command, options.runtime, false);
  command.add_option("--name", options.name, "Name of the model; default: of its directory")
      ->type_name("NAME");
  command.add_option("--alias", options.aliases, "Further name; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  add_engine_options(command, options.engine);
  add_cache_options(command, options);
  add_server_options(command, options);
  add_media_options(command, options);
  add_api_options(command, options.server);
  add_guard_options(command, options.server);
  command
      .add_option("--log-level", options.log_level,
                  "What to log: info (each request), warning, error, off")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"info", "warning", "error", "off"}))
      ->capture_default_str();
}

}  // namespace sluice::apps
