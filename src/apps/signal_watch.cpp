#include "apps/signal_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace sluice::apps {
namespace {

// A signal handler can reach nothing but globals; these are the only two of the program.
std::atomic<int> signal_event{-1};
std::atomic<int> caught_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

// write() on an eventfd is async-signal-safe and, without overflow, never blocks.
void signal_event_write(int event) {
  const int saved = errno;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event, &one, sizeof(one));
  errno = saved;
}

void handle_signal(int signal) {
  caught_signal.store(signal);
  signal_event_write(signal_event.load());
}

}  // namespace

Result<std::unique_ptr<SignalWatch>> SignalWatch::start() {
  if (signal_event.load() != -1) {
    return fail(ErrorCode::internal, "signals are watched already");
  }
  const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0) {
    return fail(ErrorCode::io, fmt::format("eventfd: {}", std::strerror(errno)));
  }
  auto watch = std::unique_ptr<SignalWatch>(new SignalWatch(event));
  signal_event.store(event);
  caught_signal.store(0);
  struct sigaction action = {};
  action.sa_handler = handle_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &watch->old_interrupt_);
  sigaction(SIGTERM, &action, &watch->old_terminate_);
  return watch;
}

SignalWatch::~SignalWatch() {
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
  signal_event.store(-1);
  close(event_);
}

void SignalWatch::wake() {
  signal_event_write(event_);
}

void SignalWatch::wait() {
  wait_readable(-1);
}

bool SignalWatch::wait_readable(int descriptor) {
  // poll() ignores a negative descriptor.
  std::array<pollfd, 2> watched{pollfd{event_, POLLIN, 0}, pollfd{descriptor, POLLIN, 0}};
  while (poll(watched.data(), watched.size(), -1) < 0 && errno == EINTR) {
  }
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t drained = read(event_, &count, sizeof(count));
  return watched[1].revents != 0;
}

std::optional<int> SignalWatch::take_signal() {
  const int signal = caught_signal.exchange(0);
  return signal == 0 ? std::nullopt : std::optional<int>(signal);
}

}  // namespace sluice::apps
