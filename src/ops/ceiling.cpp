#include "ops/ceiling.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/check.h"

namespace sluice::ops {
namespace {

constexpr std::int64_t kReadGrain = std::int64_t{64} << 10;  // bytes: shares are multiples of it
constexpr double kRunSeconds = 0.01;  // one run of a product loop: short enough to miss a hiccup

double middle(std::vector<double> values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, half);
  return *half;
}

}  // namespace

Ceiling Ceiling::better_of(const Ceiling& a, const Ceiling& b) {
  return {.flop_per_s = std::max(a.flop_per_s, b.flop_per_s),
          .int8_op_per_s = std::max(a.int8_op_per_s, b.int8_op_per_s),  // empty counts as least
          .read_byte_per_s = std::max(a.read_byte_per_s, b.read_byte_per_s)};
}

Result<CeilingProbe> CeilingProbe::create(const kernels::PeakLoops& loops, ThreadPool& pool,
                                          const Clock& clock, const Options& options) {
  SLUICE_CHECK(options.read_bytes > 0);
  SLUICE_CHECK(options.read_bytes % (std::size_t{1} << 20) == 0);
  AlignedBuffer memory = SLUICE_TRY(AlignedBuffer::allocate(options.read_bytes));
  // Every page gets memory of its own, by the thread that will read it: untouched ones all map to
  // one page of zeros.
  pool.for_ranges(static_cast<std::int64_t>(memory.size()), kReadGrain,
                  [&](std::int64_t begin, std::int64_t end) {
                    std::fill(memory.data() + begin, memory.data() + end, std::byte{0x3c});
                  });
  return CeilingProbe(loops, pool, clock, options, std::move(memory));
}

CeilingProbe::CeilingProbe(const kernels::PeakLoops& loops, ThreadPool& pool, const Clock& clock,
                           const Options& options, AlignedBuffer memory)
    : loops_(loops),
      pool_(&pool),
      clock_(&clock),
      options_(options),
      memory_(std::move(memory)),
      kept_(static_cast<std::size_t>(pool.size())) {}

Ceiling CeilingProbe::sample() {
  Ceiling ceiling;
  ceiling.flop_per_s = run_products(loops_.product);
  if (loops_.product_int8) {
    ceiling.int8_op_per_s = run_products(*loops_.product_int8);
  }
  ceiling.read_byte_per_s = run_reads();
  samples_.push_back(ceiling);
  return ceiling;
}

// Operations per second of all workers together.
double CeilingProbe::run_products(const kernels::PeakLoop& loop) {
  constexpr int kRunsMin = 5;
  std::int64_t rounds = 1000;
  double best = 0.0;
  const Clock::TimePoint begin = clock_->now();
  double elapsed = 0.0;
  for (int run = 0; run < kRunsMin || elapsed < options_.seconds; ++run) {
    const Clock::TimePoint run_begin = clock_->now();
    pool_->run([&](int) { loop.run(rounds); });
    const Clock::TimePoint run_end = clock_->now();
    const double seconds = std::max(seconds_between(run_begin, run_end), 1e-9);
    best = std::max(
        best, static_cast<double>(rounds) * pool_->size() * loop.operations_per_round / seconds);
    if (seconds < kRunSeconds / 2) {
      rounds *= 2;
    }
    elapsed = seconds_between(begin, run_end);
  }
  return best;
}

// Bytes per second of all workers together; at least two passes.
double CeilingProbe::run_reads() {
  double best = 0.0;
  const Clock::TimePoint begin = clock_->now();
  double elapsed = 0.0;
  for (int pass = 0; pass < 2 || elapsed < options_.seconds; ++pass) {
    const Clock::TimePoint pass_begin = clock_->now();
    const std::int64_t grains = static_cast<std::int64_t>(memory_.size()) / kReadGrain;
    pool_->run([&](int worker) {
      const std::int64_t from = grains * worker / pool_->size() * kReadGrain;
      const std::int64_t to = grains * (worker + 1) / pool_->size() * kReadGrain;
      kept_[static_cast<std::size_t>(worker)] = loops_.read(memory_.data() + from, to - from);
    });
    const Clock::TimePoint pass_end = clock_->now();
    const double seconds = std::max(seconds_between(pass_begin, pass_end), 1e-9);
    best = std::max(best, static_cast<double>(memory_.size()) / seconds);
    elapsed = seconds_between(begin, pass_end);
  }
  return best;
}

Ceiling CeilingProbe::best() const {
  Ceiling best;
  for (const Ceiling& sample : samples_) {
    best = Ceiling::better_of(best, sample);
  }
  return best;
}

Ceiling CeilingProbe::median() const {
  SLUICE_CHECK(!samples_.empty());
  std::vector<double> products;
  std::vector<double> products_int8;
  std::vector<double> reads;
  for (const Ceiling& sample : samples_) {
    products.push_back(sample.flop_per_s);
    reads.push_back(sample.read_byte_per_s);
    if (sample.int8_op_per_s) {
      products_int8.push_back(*sample.int8_op_per_s);
    }
  }
  Ceiling median{.flop_per_s = middle(products),
                 .int8_op_per_s = std::nullopt,
                 .read_byte_per_s = middle(reads)};
  if (!products_int8.empty()) {
    median.int8_op_per_s = middle(products_int8);
  }
  return median;
}

}  // namespace sluice::ops
