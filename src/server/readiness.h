// Whether the server can answer: it can once a real forward pass succeeded, until it drains.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <memory>

#include "engine/engine.h"

namespace sluice {

// Thread rule: status() and drain() from any thread; probe() once.
class Readiness {
 public:
  enum class Status { loading, ready, draining, device_error };

  // Lets the engine compute one token. The status follows when it is done. `io` and this object
  // must outlive the probe, which ends at the latest with end_probe().
  void probe(Engine& engine, boost::asio::io_context& io);
  void end_probe() { stream_.reset(); }

  void drain() { draining_.store(true); }
  Status status() const { return draining_.load() ? Status::draining : probed_.load(); }

 private:
  void take_events();

  std::atomic<Status> probed_{Status::loading};
  std::atomic<bool> draining_{false};
  std::shared_ptr<GenerationStream> stream_;
};

}  // namespace sluice
