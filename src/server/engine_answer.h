// The outcome of an engine command on its way to the exchange that asked for it.
#pragma once

#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <utility>

#include "server/exchange.h"

namespace sluice {

// For the on_done of a command: calls `answer` with the exchange and the outcome, on the thread of
// the exchange. It is moved on to there: an exchange must not end on the engine's thread.
template <class Outcome, class Answer>
std::function<void(const Outcome&)> answer_exchange(std::shared_ptr<Exchange> exchange,
                                                    Answer answer) {
  return
      [exchange = std::move(exchange), answer = std::move(answer)](const Outcome& outcome) mutable {
        const auto executor = exchange->executor();
        boost::asio::post(executor, [exchange = std::move(exchange), answer = std::move(answer),
                                     outcome] { answer(*exchange, outcome); });
      };
}

}  // namespace sluice
