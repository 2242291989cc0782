// The compute pool: a fixed set of threads that run one region at a time, all together.
//
// run(f) calls f(i) once for every worker i in [0, size()); the caller is worker 0. Work is split
// by shape only, so results never depend on who was faster. Every worker, and the caller while
// inside run(), has the numeric float mode of platform/float_mode.h. Waiting spins for some
// microseconds, then sleeps on a futex: an idle pool costs nothing.
//
// Thread rule: one owner thread calls run(); regions do not nest.
#pragma once

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

#include "platform/float_mode.h"

namespace sluice {

class ThreadPool {
 public:
  // size >= 1 workers, the owner included.
  explicit ThreadPool(int size);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  template <std::invocable<int> F>
  void run(F&& work) {
    run_region([](void* context,
                  int worker) { (*static_cast<std::remove_reference_t<F>*>(context))(worker); },
               const_cast<void*>(static_cast<const void*>(&work)));
  }

  // Calls work(begin, end) on each worker with its contiguous share of [0, count). Shares are
  // multiples of `grain` (the last may be ragged) and depend on count, grain and size() alone. A
  // single grain is the caller's: no other worker is woken for it.
  template <std::invocable<std::int64_t, std::int64_t> F>
  void for_ranges(std::int64_t count, std::int64_t grain, F&& work) {
    const std::int64_t grains = (count + grain - 1) / grain;
    if (grains <= 1) {
      const FlushDenormals float_mode;
      if (count > 0) {
        work(std::int64_t{0}, count);
      }
      return;
    }
    const std::int64_t workers = size();
    run([&](int worker) {
      const std::int64_t begin = grains * worker / workers * grain;
      const std::int64_t end = std::min(count, grains * (worker + 1) / workers * grain);
      if (begin < end) {
        work(begin, end);
      }
    });
  }

 private:
  using Region = void (*)(void* context, int worker);

  void run_region(Region region, void* context);
  void worker_loop(int worker);

  Region region_ = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> generation_{0};  // bumped once per region
  alignas(64) std::atomic<std::uint32_t> remaining_{0};   // workers still inside the region
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

// Number of CPUs this process may run on; at least 1.
int available_cpus();

}  // namespace sluice
