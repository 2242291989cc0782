// SIGINT and SIGTERM as events of the main thread, for as long as the object lives. Before and
// after, the signals do what they always do (end the process).
//
// Also the one place where the main thread sleeps: other threads wake it through wake().
// Thread rule: wake() from any thread; the rest from the owner. One object at a time.
#pragma once

#include <signal.h>

#include <memory>
#include <optional>

#include "base/result.h"

namespace sluice::apps {

class SignalWatch {
 public:
  // Errors: io (no descriptor left), internal (another watch lives).
  static Result<std::unique_ptr<SignalWatch>> start();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  void wake();

  // Sleeps until wake() was called or a signal came since the last wait().
  void wait();

  // Sleeps like wait(), but also until `descriptor` is readable; true when it is.
  bool wait_readable(int descriptor);

  // The signal caught since the last call, if any.
  std::optional<int> take_signal();

 private:
  explicit SignalWatch(int event) : event_(event) {}

  int event_;  // eventfd: readable when there is a reason to wake up
  struct sigaction old_interrupt_ = {};
  struct sigaction old_terminate_ = {};
};

}  // namespace sluice::apps
