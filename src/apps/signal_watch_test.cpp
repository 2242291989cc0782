#include "apps/signal_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>

namespace sluice::apps {
namespace {

TEST(SignalWatch, TurnsSignalsIntoEvents) {
  const auto watch = SignalWatch::start().value();
  EXPECT_FALSE(watch->take_signal());
  raise(SIGINT);
  watch->wait();  // must not sleep
  EXPECT_EQ(watch->take_signal(), SIGINT);
  EXPECT_FALSE(watch->take_signal());
  raise(SIGTERM);
  watch->wait();
  EXPECT_EQ(watch->take_signal(), SIGTERM);
}

TEST(SignalWatch, OtherThreadsWakeIt) {
  const auto watch = SignalWatch::start().value();
  std::thread other([&watch] { watch->wake(); });
  watch->wait();
  other.join();
  EXPECT_FALSE(watch->take_signal());
}

TEST(SignalWatch, WakesForAReadableDescriptor) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const auto watch = SignalWatch::start().value();
  watch->wake();
  EXPECT_FALSE(watch->wait_readable(ends[0]));
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_TRUE(watch->wait_readable(ends[0]));
  close(ends[0]);
  close(ends[1]);
}

TEST(SignalWatch, GivesTheSignalsBack) {
  struct sigaction before = {};
  sigaction(SIGINT, nullptr, &before);
  {
    const auto watch = SignalWatch::start().value();
    EXPECT_FALSE(SignalWatch::start()) << "two watches at once";
  }
  struct sigaction after = {};
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
  EXPECT_TRUE(SignalWatch::start());
}

}  // namespace
}  // namespace sluice::apps
