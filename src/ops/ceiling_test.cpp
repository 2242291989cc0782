#include "ops/ceiling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "kernels/select.h"

namespace sluice::ops {
namespace {

TEST(Ceiling, EveryTableHasLoopsThatRun) {
  const CpuFeatures cpu = detect_cpu_features();
  const SteadyClock clock;
  ThreadPool pool(2);
  for (const kernels::KernelTable* table : kernels::supported_tables(cpu)) {
    CeilingProbe probe =
        CeilingProbe::create(kernels::peak_loops(*table, cpu), pool, clock,
                             {.read_bytes = std::size_t{1} << 20, .seconds = 0.001})
            .value();
    const Ceiling first = probe.sample();
    const Ceiling second = probe.sample();
    EXPECT_GT(first.flop_per_s, 1e6) << table->name;
    EXPECT_GT(first.read_byte_per_s, 1e6) << table->name;
    EXPECT_EQ(probe.best().flop_per_s, std::max(first.flop_per_s, second.flop_per_s));
    EXPECT_EQ(probe.best().read_byte_per_s,
              std::max(first.read_byte_per_s, second.read_byte_per_s));
    EXPECT_LE(probe.median().flop_per_s, probe.best().flop_per_s);
    EXPECT_EQ(first.int8_op_per_s.has_value(), probe.loops().product_int8.has_value());
    EXPECT_EQ(first.int8_op_per_s.has_value(),
              table->name == std::string_view("amx") && cpu.amx_int8);
  }
}

TEST(Ceiling, BetterOfTakesEachMemberAlone) {
  const Ceiling a{.flop_per_s = 2.0, .int8_op_per_s = std::nullopt, .read_byte_per_s = 5.0};
  const Ceiling b{.flop_per_s = 3.0, .int8_op_per_s = 4.0, .read_byte_per_s = 1.0};
  const Ceiling best = Ceiling::better_of(a, b);
  EXPECT_EQ(best.flop_per_s, 3.0);
  EXPECT_EQ(best.int8_op_per_s, 4.0);
  EXPECT_EQ(best.read_byte_per_s, 5.0);
}

}  // namespace
}  // namespace sluice::ops
