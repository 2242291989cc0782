// Conversations made up from a seed: which words are said does not depend on time or threads, only
// on the seed and the conversation's number (and, from the second turn on, on the server's
// answers).
//
// Thread rule: the functions are pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "load/conversation.h"
#include "load/random_stream.h"

namespace sluice::load {

enum class WorkloadKind {
  chat,     // a person who talks: short messages, a growing history
  agent,    // a program that works: system prompt, tools, results of tools as long as a page
  prompts,  // single messages that share nothing
};

std::optional<WorkloadKind> workload_from_name(std::string_view name);
std::string_view to_string(WorkloadKind kind);

struct WorkloadOptions {
  WorkloadKind kind = WorkloadKind::chat;
  std::uint64_t seed = 1;
  std::int64_t turns = 4;           // requests of a conversation; prompts: always 1
  std::int64_t system_words = 200;  // of the system prompt that all conversations share; 0: none
  std::int64_t prompt_words = 40;   // of the first message, about
  std::int64_t result_words = 150;  // of a tool's result, about
  std::int64_t max_tokens = 128;
};

// Each request holds all earlier messages with the server's own answers. A call in an answer gets
// its result; an agent without one is told to go on. Ends early when a request fails.
std::unique_ptr<Conversation> make_conversation(const WorkloadOptions& options,
                                                std::uint64_t number);

// Arrivals of a Poisson process of `rate` a second. Thread rule: one owner.
class Arrivals {
 public:
  Arrivals(double rate, std::uint64_t seed);

  double next();  // seconds after the start, of one after the other

 private:
  double mean_gap_;
  double now_ = 0;
  RandomStream random_;
};

}  // namespace sluice::load
