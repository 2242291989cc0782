// The threaded product: any number of rows on any number of threads gives the bits of the reference
// table on one thread, for every table, format and reduction.
#include "ops/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/ref/table.h"
#include "kernels/select.h"
#include "kernels/test_support.h"

namespace sluice::ops {
namespace {

using kernels::kCanary;
using kernels::WeightFormat;

constexpr std::int64_t kRowsMax = 513;
constexpr std::int64_t kInputs = 4 * 17 * 32;  // 17 steps a slice: a run of them ends within
constexpr std::int64_t kOutputs = 72;          // three panels, the last one ragged
constexpr int kThreadsMax = 4;

// Every count up to two blocks of any kernel, and around its largest pass.
std::vector<std::int64_t> row_counts() {
  std::vector<std::int64_t> counts{511, 512, kRowsMax};
  for (std::int64_t rows = 1; rows <= 65; ++rows) {
    counts.push_back(rows);
  }
  return counts;
}

struct Way {
  WeightFormat format;
  Reduction reduction;
};
constexpr Way kWays[] = {
    {WeightFormat::bf16, Reduction::whole}, {WeightFormat::bf16, Reduction::row_parallel},
    {WeightFormat::fp8, Reduction::whole},  {WeightFormat::fp8, Reduction::row_parallel},
    {WeightFormat::int8, Reduction::whole}, {WeightFormat::int4, Reduction::row_parallel}};

struct Problem {
  std::vector<bf16_t> x;
  PackedLinear weight;
  Reduction reduction;

  explicit Problem(const Way& way)
      : weight(PackedLinear::allocate(way.format, kOutputs, kInputs).value()),
        reduction(way.reduction) {
    kernels::Random random(11);
    x = random.bf16s(kRowsMax * kInputs, kernels::Values::normal);
    const std::vector<bf16_t> w = random.bf16s(kOutputs * kInputs, kernels::Values::normal);
    weight.set_rows(0, kOutputs, {.values = w.data()});
  }

  // One element more than the result: nobody may touch it.
  std::vector<float> run(const kernels::KernelTable& table, ThreadPool& pool,
                         std::int64_t rows) const {
    std::vector<bf16_t> tiles(static_cast<std::size_t>(kernels::row_tiles_elements(rows, kInputs)));
    std::vector<std::int8_t> quantised(
        static_cast<std::size_t>(kernels::int_rows_bytes(rows, kInputs)));
    std::vector<float> scales(static_cast<std::size_t>(rows));
    std::vector<float> out(static_cast<std::size_t>(rows * kOutputs + 1), kCanary);
    LinearInput input(
        x.data(), rows, kInputs,
        {.tiles = tiles.data(), .quantised = quantised.data(), .scales = scales.data()});
    linear(table, pool, input, weight, reduction, out.data());
    return out;
  }
};

class LinearTest : public testing::TestWithParam<const kernels::KernelTable*> {};

TEST_P(LinearTest, RowsAndThreadsDoNotShow) {
  ThreadPool one(1);
  for (const Way& way : kWays) {
    const Problem problem(way);
    const std::vector<float> all = problem.run(kernels::ref::table(), one, kRowsMax);
    for (int threads = 1; threads <= kThreadsMax; ++threads) {
      ThreadPool pool(threads);
      for (const std::int64_t rows : row_counts()) {
        if (threads > 1 && rows % threads != 1) {  // all counts once, some on more threads
          continue;
        }
        std::vector<float> expected(all.begin(), all.begin() + rows * kOutputs);
        expected.push_back(kCanary);
        ASSERT_EQ(kernels::differences(expected, problem.run(*GetParam(), pool, rows)), 0)
            << kernels::to_string(way.format) << ", " << rows << " rows, " << threads << " threads";
      }
    }
  }
}

// Weights of several formats and sizes in one call: what each gives alone.
TEST_P(LinearTest, ProductsOfTheSameRowsDoNotSeeEachOther) {
  struct Part {
    PackedLinear weight;
    std::vector<float> alone;
    std::vector<float> together;
  };
  kernels::Random random(12);
  constexpr std::int64_t kRows = 3;
  const std::vector<bf16_t> x = random.bf16s(kRows * kInputs, kernels::Values::normal);
  std::vector<bf16_t> tiles(static_cast<std::size_t>(kernels::row_tiles_elements(kRows, kInputs)));
  std::vector<std::int8_t> quantised(
      static_cast<std::size_t>(kernels::int_rows_bytes(kRows, kInputs)));
  std::vector<float> scales(kRows);
  const RowTiles memory{
      .tiles = tiles.data(), .quantised = quantised.data(), .scales = scales.data()};
  for (int threads = 1; threads <= kThreadsMax; ++threads) {
    ThreadPool pool(threads);
    std::vector<Part> parts;
    for (const auto& [format, outputs] : {std::pair{WeightFormat::int8, std::int64_t{70}},
                                          {WeightFormat::bf16, std::int64_t{5}},
                                          {WeightFormat::int4, std::int64_t{200}},
                                          {WeightFormat::fp8, std::int64_t{150}}}) {
      const std::vector<float> canaries(static_cast<std::size_t>(kRows * outputs + 1), kCanary);
      parts.push_back(
          {PackedLinear::allocate(format, outputs, kInputs).value(), canaries, canaries});
      const std::vector<bf16_t> w = random.bf16s(outputs * kInputs, kernels::Values::normal);
      parts.back().weight.set_rows(0, outputs, {.values = w.data()});
    }
    std::vector<LinearProduct> products;
    for (Part& part : parts) {
      LinearInput input(x.data(), kRows, kInputs, memory);
      linear(*GetParam(), pool, input, part.weight, Reduction::whole, part.alone.data());
      products.push_back({&part.weight, part.together.data()});
    }
    LinearInput input(x.data(), kRows, kInputs, memory);
    linear(*GetParam(), pool, input, products, Reduction::whole);
    for (const Part& part : parts) {
      EXPECT_EQ(kernels::differences(part.alone, part.together), 0)
          << kernels::to_string(part.weight.format()) << ", " << threads << " threads";
    }
  }
}

std::vector<const kernels::KernelTable*> fast_tables() {
  std::vector<const kernels::KernelTable*> tables;
  for (const kernels::KernelTable* table : kernels::supported_tables(detect_cpu_features())) {
    if (table != &kernels::ref::table()) {
      tables.push_back(table);
    }
  }
  return tables;
}

INSTANTIATE_TEST_SUITE_P(Tables, LinearTest, testing::ValuesIn(fast_tables()),
                         [](const auto& table) { return std::string(table.param->name); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LinearTest);

}  // namespace
}  // namespace sluice::ops
