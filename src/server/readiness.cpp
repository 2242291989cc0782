#include "server/readiness.h"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <utility>
#include <variant>

namespace sluice {

void Readiness::probe(Engine& engine, boost::asio::io_context& io) {
  probed_.store(Status::warming_up);
  Request request;
  request.id = "readiness";
  request.token_ids = {0};
  request.stop.tokens_max = 1;
  request.counted = false;
  auto stream = engine.submit(std::move(request),
                              [this, &io] { boost::asio::post(io, [this] { take_events(); }); });
  if (!stream) {
    spdlog::error("the engine refused its first request: {}", stream.error().message);
    probed_.store(Status::device_error);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stream_ = std::move(*stream);
  }
  boost::asio::post(io, [this] { take_events(); });  // what came before stream_ was set
}

void Readiness::end_probe() {
  const std::lock_guard lock(mutex_);
  stream_.reset();
}

void Readiness::take_events() {
  const std::lock_guard lock(mutex_);
  if (!stream_) {
    return;
  }
  while (auto event = stream_->try_next()) {
    const auto* finished = std::get_if<GenerationFinished>(&*event);
    if (finished == nullptr) {
      continue;
    }
    if (finished->reason == FinishReason::error) {
      spdlog::error("the first forward pass failed: {}",
                    finished->error ? finished->error->message : "no reason given");
      probed_.store(Status::device_error);
    } else {
      probed_.store(Status::ready);
    }
  }
}

}  // namespace sluice
