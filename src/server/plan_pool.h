// Threads for what a request needs before the engine can have it and what takes too long for the
// threads that serve all connections: parsing and encoding long prompts, fetching and decoding
// pictures.
//
// Thread rule: all methods from any thread; the destructor from the owner.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <functional>

namespace sluice {

struct PlanPoolLimits {
  int threads = 2;
  std::size_t tasks_max = 1024;                  // waiting and running
  std::size_t bytes_max = std::size_t{1} << 30;  // of request bodies, in all of these
};

class PlanPool {
 public:
  explicit PlanPool(const PlanPoolLimits& limits);
  ~PlanPool() { end(); }
  PlanPool(const PlanPool&) = delete;
  PlanPool& operator=(const PlanPool&) = delete;

  // Runs the task, which must not throw, on one of the threads. False: there is no room.
  bool post(std::size_t body_bytes, std::move_only_function<void()> task);

  // Waits for what runs; what waits runs as well, to find stopping() set. Nothing is posted from
  // then on. To be called before anything goes that tasks use, the executors they hold included.
  void end();

  // From now on tasks should give up.
  void stop() { stopping_.store(true); }
  const std::atomic<bool>& stopping() const { return stopping_; }

 private:
  bool take(std::size_t body_bytes);
  void give_back(std::size_t body_bytes);

  const PlanPoolLimits limits_;
  std::atomic<std::size_t> tasks_{0};
  std::atomic<std::size_t> bytes_{0};
  std::atomic<bool> stopping_{false};
  boost::asio::thread_pool threads_;
};

}  // namespace sluice
