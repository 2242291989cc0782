// Everything about the server that a flag can change. Built in apps/, read only from then on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/anthropic/messages_request.h"
#include "api/fields/sampling_defaults.h"
#include "api/openai/chat_request.h"
#include "server/media_config.h"

namespace sluice {

struct ServerConfig {
  std::string host = "127.0.0.1";  // address to listen on; "0.0.0.0" or "::" for all
  std::uint16_t port = 8000;       // 0: a free one
  int threads = 2;                 // that run HTTP

  // Limits. A client that is slower than these is cut off.
  std::size_t body_bytes_max = std::size_t{128} << 20;
  std::size_t body_bytes_total = std::size_t{512} << 20;  // of all that arrive; see BodyBudget
  std::size_t header_bytes_max = std::size_t{64} << 10;
  std::size_t connections_max = 1024;
  int header_seconds_max = 15;  // from the first byte of a request to the end of its headers
  int idle_seconds_max = 75;    // between requests
  int body_grace_seconds = 30;  // for a body; longer ones need body_bytes_per_second
  std::size_t body_bytes_per_second = std::size_t{16} << 10;
  int write_seconds_max = 30;  // without a single byte taken
  int drain_seconds_max = 30;  // for running answers once stop() was called

  int ping_seconds = 5;  // a stream that is silent for this long gets a comment; 0 never

  // Who may ask.
  std::vector<std::string> api_keys = {};                                 // none: everybody
  std::map<std::string, std::int64_t, std::less<>> key_context_max = {};  // tokens, for some keys
  std::vector<std::string> admin_keys = {};     // none: clients on this machine administer
  bool public_info = true;                      // /version and /metrics without a key
  std::vector<std::string> cors_origins = {};   // beside loopback ones; "*" needs a key
  std::vector<std::string> allowed_hosts = {};  // Host names accepted beside loopback ones

  MediaConfig media = {};

  std::filesystem::path cache_dir = {};  // of cache files; empty: there are none

  bool debug = false;                  // /debug/parse is there
  bool strict_model = false;           // an unknown `model` is 404 instead of the served one
  bool responses_store = true;         // responses are kept for previous_response_id and GET
  bool tool_fence_guard = true;        // what looks like a call inside a ``` fence is text
  bool raw_completions = true;         // /v1/completions is there
  bool client_templates = false;       // a request may bring its own chat_template
  bool reject_overflow = false;        // max_tokens beyond a limit is an error instead of less
  std::int64_t choices_max = 8;        // `n`
  std::int64_t answer_tokens_max = 0;  // whatever max_tokens says; 0: the rest of the context
  SamplingDefaults sampling = {};
  ChatDefaults chat = {};
  MessagesDefaults messages = {};
};

}  // namespace sluice
