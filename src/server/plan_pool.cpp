#include "server/plan_pool.h"

#include <malloc.h>

#include <boost/asio/post.hpp>
#include <utility>

namespace sluice {
namespace {

constexpr std::size_t kLargeBytes = std::size_t{8} << 20;

}  // namespace

PlanPool::PlanPool(const PlanPoolLimits& limits)
    : limits_(limits),
      turns_(limits.tasks_at_once),
      threads_(static_cast<std::size_t>(limits.tasks_at_once + limits.waits_max)) {}

void PlanPool::end() {
  stop();
  threads_.join();
}

bool PlanPool::post(std::size_t body_bytes, std::move_only_function<void()> task) {
  if (!take(body_bytes)) {
    return false;
  }
  boost::asio::post(threads_, [this, body_bytes, run = std::move(task)]() mutable {
    turns_.acquire();
    run();
    run = nullptr;  // what it holds goes before its room is free
    if (body_bytes >= kLargeBytes) {
      malloc_trim(0);  // the C library would keep gigabytes of small pieces for ever
    }
    turns_.release();
    give_back(body_bytes);
  });
  return true;
}

PlanPool::Wait PlanPool::begin_wait() {
  if (waits_.fetch_add(1) >= limits_.waits_max) {
    waits_.fetch_sub(1);
    return nullptr;
  }
  turns_.release();
  return Wait(this);
}

void PlanPool::end_wait() {
  turns_.acquire();
  waits_.fetch_sub(1);
}

// Both counts are taken first and given back when they were too much: never beyond the limits.
bool PlanPool::take(std::size_t body_bytes) {
  const bool has_task = tasks_.fetch_add(1) < limits_.tasks_max;
  const bool has_bytes = bytes_.fetch_add(body_bytes) + body_bytes <= limits_.bytes_max;
  if (has_task && has_bytes) {
    return true;
  }
  give_back(body_bytes);
  return false;
}

void PlanPool::give_back(std::size_t body_bytes) {
  bytes_.fetch_sub(body_bytes);
  tasks_.fetch_sub(1);
}

}  // namespace sluice
