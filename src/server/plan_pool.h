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
#include <memory>
#include <semaphore>

namespace sluice {

struct PlanPoolLimits {
  int tasks_at_once = 2;                         // that compute
  int waits_max = 8;                             // that wait for others meanwhile
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

  // Where a running task waits for somebody else, such as a host on the Internet: while the object
  // lives another task has its turn. Null when waits_max tasks wait already.
  struct EndOfWait {
    void operator()(PlanPool* pool) const { pool->end_wait(); }
  };
  using Wait = std::unique_ptr<PlanPool, EndOfWait>;
  Wait begin_wait();

  // Waits for what runs; what waits runs as well, to find stopping() set. Nothing is posted from
  // then on. To be called before anything goes that tasks use, the executors they hold included.
  void end();

  // From now on tasks should give up.
  void stop() { stopping_.store(true); }
  const std::atomic<bool>& stopping() const { return stopping_; }

 private:
  void end_wait();
  bool take(std::size_t body_bytes);
  void give_back(std::size_t body_bytes);

  const PlanPoolLimits limits_;
  std::atomic<std::size_t> tasks_{0};
  std::atomic<std::size_t> bytes_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<int> waits_{0};
  std::counting_semaphore<> turns_;
  boost::asio::thread_pool threads_;
};

}  // namespace sluice
