#include "platform/thread_pool.h"

#include <sched.h>

#include "base/check.h"

namespace sluice {
namespace {

// Some 20 to 100 microseconds, by how long the CPU's pause is: a decode step has some 150 regions
// that follow one another within a few microseconds, while an idle server must not burn a core.
constexpr int kSpinsBeforeSleep = 2000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Waits until value != old: spins, then sleeps.
void wait_while_equal(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int spin = 0; spin < kSpinsBeforeSleep; ++spin) {
    if (value.load(std::memory_order_acquire) != old) {
      return;
    }
    relax();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int size) {
  SLUICE_CHECK(size >= 1);
  threads_.reserve(static_cast<std::size_t>(size) - 1);
  for (int worker = 1; worker < size; ++worker) {
    threads_.emplace_back([this, worker] { worker_loop(worker); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void ThreadPool::run_region(Region region, void* context) {
  const FlushDenormals float_mode;
  if (!threads_.empty()) {
    region_ = region;
    context_ = context;
    remaining_.store(static_cast<std::uint32_t>(threads_.size()), std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
  }
  region(context, 0);
  for (std::uint32_t left = remaining_.load(std::memory_order_acquire); left != 0;
       left = remaining_.load(std::memory_order_acquire)) {
    wait_while_equal(remaining_, left);
  }
}

void ThreadPool::worker_loop(int worker) {
  const FlushDenormals float_mode;
  std::uint32_t seen = 0;
  while (true) {
    wait_while_equal(generation_, seen);
    ++seen;
    if (stopping_.load(std::memory_order_relaxed)) {
      return;
    }
    region_(context_, worker);
    if (remaining_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      remaining_.notify_all();
    }
  }
}

int available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) {
    return 1;
  }
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace sluice
