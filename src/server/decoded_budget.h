// How much memory the pixels of all requests may take, from when they are decoded until the engine
// has no more use for them: a queue full of large pictures must not fill the machine.
//
// Thread rule: the budget, and inputs it holds, from any thread; a share has one owner.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "request/vision_input.h"

namespace sluice {

class DecodedBudget {
 public:
  explicit DecodedBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  std::size_t bytes_max() const { return bytes_max_; }
  std::size_t bytes_used() const { return used_->load(); }

  // Bytes that were taken for inputs to come. What no input got goes back with it.
  class Share {
   public:
    Share(Share&& other) noexcept
        : used_(std::move(other.used_)), bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&&) = delete;
    ~Share() {
      if (used_) {
        *used_ -= bytes_;
      }
    }

    // The input, which gives the bytes of its pixels back when nobody has it any more. At most what
    // is left is counted.
    std::shared_ptr<const VisionInput> hold(VisionInput input) {
      const std::size_t bytes = std::min(bytes_, input.pixels.size());
      bytes_ -= bytes;
      return {new VisionInput(std::move(input)), [used = used_, bytes](const VisionInput* gone) {
                delete gone;
                *used -= bytes;
              }};
    }

   private:
    friend class DecodedBudget;
    Share(std::shared_ptr<std::atomic<std::size_t>> used, std::size_t bytes)
        : used_(std::move(used)), bytes_(bytes) {}

    std::shared_ptr<std::atomic<std::size_t>> used_;
    std::size_t bytes_;
  };

  // None: others have too much of it.
  std::optional<Share> take(std::size_t bytes) const {
    std::size_t used = used_->load();
    do {
      if (used > bytes_max_ || bytes > bytes_max_ - used) {
        return std::nullopt;
      }
    } while (!used_->compare_exchange_weak(used, used + bytes));
    return Share(used_, bytes);
  }

 private:
  std::size_t bytes_max_;
  // Shared with the inputs, which may outlive the budget.
  std::shared_ptr<std::atomic<std::size_t>> used_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace sluice
