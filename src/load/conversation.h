// One conversation of a load: requests that follow each other, and where they come from.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "client/chat_client.h"

namespace sluice::load {

// Thread rule: one owner at a time.
class Conversation {
 public:
  Conversation() = default;
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;
  virtual ~Conversation() = default;

  virtual bool is_over() const = 0;
  // Seconds after the run's start before which the next request is not sent; none: no such time.
  virtual std::optional<double> next_at() const = 0;
  // The next request, without model and stream. Only while it is not over.
  virtual boost::json::object next_body() const = 0;
  // What the server said to it; null: it failed.
  virtual void take(const ChatAnswer* reply) = 0;
};

struct PlannedConversation {
  std::unique_ptr<Conversation> conversation;
  // Arrival, in seconds after the run's start; none: whenever a user is free (closed loop).
  std::optional<double> at;
};

// The next conversation of a load; none: there are no more.
using ConversationSource = std::function<std::optional<PlannedConversation>()>;

}  // namespace sluice::load
