// Whether the server can answer: it can once there is an engine and a real forward pass succeeded,
// until it drains.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <mutex>

#include "engine/engine.h"

namespace sluice {

// Thread rule: everything from any thread; probe() once.
class Readiness {
 public:
  // warming_up: the first forward pass runs; requests may wait behind it.
  enum class Status { loading, warming_up, ready, draining, device_error };

  // How far loading is: 0..1.
  void set_progress(double progress) { progress_.store(progress); }
  double progress() const { return progress_.load(); }

  // Loading is done: lets the engine compute one token. The status follows when it is done. `io`
  // and this object must outlive the probe, which ends at the latest with end_probe().
  void probe(Engine& engine, boost::asio::io_context& io);
  void end_probe();

  void drain() { draining_.store(true); }
  Status status() const { return draining_.load() ? Status::draining : probed_.load(); }

 private:
  void take_events();

  std::atomic<Status> probed_{Status::loading};
  std::atomic<bool> draining_{false};
  std::atomic<double> progress_{0.0};
  std::mutex mutex_;
  std::shared_ptr<GenerationStream> stream_;  // guarded by mutex_
};

}  // namespace sluice
