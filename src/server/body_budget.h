// How much memory the request bodies of all connections may take while they arrive: many slow large
// uploads at once must not fill the machine.
//
// The first kFreeBytes of every body are outside the budget (connections are limited, too), so that
// requests of ordinary size go on while large ones have to be refused.
// Thread rule: the budget from any thread; a lease has one owner.
#pragma once

#include <atomic>
#include <cstddef>

namespace sluice {

class BodyBudget {
 public:
  static constexpr std::size_t kFreeBytes = std::size_t{64} << 10;  // of each body

  explicit BodyBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  std::size_t bytes_max() const { return bytes_max_; }
  std::size_t bytes_used() const { return used_.load(); }

 private:
  friend class BodyLease;

  bool take(std::size_t bytes) {
    std::size_t used = used_.load();
    do {
      if (bytes > bytes_max_ - used) {
        return false;
      }
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return true;
  }

  const std::size_t bytes_max_;
  std::atomic<std::size_t> used_{0};
};

// The part of one body. The budget must outlive it.
class BodyLease {
 public:
  explicit BodyLease(BodyBudget& budget) : budget_(&budget) {}
  ~BodyLease() { release(); }
  BodyLease(const BodyLease&) = delete;
  BodyLease& operator=(const BodyLease&) = delete;

  // Whether the body may have this size. False changes nothing.
  bool grow_to(std::size_t body_bytes) {
    const std::size_t counted =
        body_bytes > BodyBudget::kFreeBytes ? body_bytes - BodyBudget::kFreeBytes : 0;
    if (counted > held_) {
      if (!budget_->take(counted - held_)) {
        return false;
      }
      held_ = counted;
    }
    return true;
  }

  void release() {
    budget_->used_.fetch_sub(held_);
    held_ = 0;
  }

 private:
  BodyBudget* budget_;
  std::size_t held_ = 0;
};

}  // namespace sluice
