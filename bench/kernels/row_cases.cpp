#include <fmt/format.h>

#include <functional>
#include <memory>
#include <utility>

#include "bench/kernels/kernel_case.h"
#include "ops/rows.h"
#include "weights/released_shapes.h"

namespace sluice::bench {
namespace {

constexpr std::int64_t kRows = 512;

struct Rows {
  explicit Rows(std::int64_t size)
      : a(static_cast<std::size_t>(kRows * size), 0.5F),
        b(a.size(), 0.25F),
        y(static_cast<std::size_t>(kRows * kernels::pad32(size))) {}

  std::vector<float> a;
  std::vector<float> b;
  std::vector<bf16_t> y;
};

using Operation = void (*)(Machine&, std::int64_t size, Rows&);

// inputs: fp32 values read for each one.
KernelCase row_case(const char* name, const char* label, std::int64_t size, double inputs,
                    Operation operation) {
  return {.name = fmt::format("{}/{}/T{}x{}", name, label, kRows, size),
          .flops = 0.0,
          .bytes = inputs * 4.0 * static_cast<double>(kRows * size),
          .prepare = [=](Machine& machine) -> Body {
            const auto rows = std::make_shared<Rows>(size);
            return [=, &machine] { operation(machine, size, *rows); };
          }};
}

}  // namespace

std::vector<KernelCase> row_cases() {
  std::vector<KernelCase> cases;
  for (const auto& [name, label] :
       {std::pair("qwen3.5-0.8b", "0.8b"), std::pair("qwen3.6-27b", "27b")}) {
    const ModelConfig config = released_config(name, 4).value();
    cases.push_back(row_case("rms_norm", label, config.hidden_size, 1.0,
                             [](Machine& machine, std::int64_t size, Rows& rows) {
                               ops::rms_norm(machine.table(), machine.pool(), rows.a.data(), kRows,
                                             size, rows.b.data(), 1e-6F, rows.y.data());
                             }));
    cases.push_back(row_case(
        "add", label, config.hidden_size, 2.0, [](Machine& machine, std::int64_t size, Rows& rows) {
          ops::add(machine.table(), machine.pool(), rows.a.data(), rows.b.data(), kRows, size);
        }));
    cases.push_back(row_case("silu_mul", label, config.intermediate_size, 2.0,
                             [](Machine& machine, std::int64_t size, Rows& rows) {
                               ops::silu_mul(machine.table(), machine.pool(), rows.a.data(),
                                             rows.b.data(), kRows, size, rows.y.data());
                             }));
  }
  return cases;
}

}  // namespace sluice::bench
