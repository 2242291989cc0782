#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "bench/kernels/kernel_case.h"
#include "ops/linear.h"
#include "weights/random_weights.h"
#include "weights/released_shapes.h"
#include "weights/tensor_registry.h"

namespace sluice::bench {
namespace {

struct Projection {
  std::string name;  // "27b/mlp.down_proj"
  std::int64_t n;
  std::int64_t k;
  ops::Reduction reduction;
  kernels::WeightFormat format = kernels::WeightFormat::bf16;

  std::size_t bytes() const {
    return static_cast<std::size_t>(kernels::packed_bytes(format, n, k));
  }
  bool same_work(const Projection& other) const {
    return n == other.n && k == other.k && reduction == other.reduction;
  }
};

// Copies of one packed weight. The cases of a projection follow one another and share them.
class WeightShelf {
 public:
  const std::vector<ops::PackedLinear>& copies(const Projection& projection, Machine& machine) {
    if (name_ != projection.name || format_ != projection.format) {
      copies_.clear();
      fill(projection, machine);
      name_ = projection.name;
      format_ = projection.format;
    }
    return copies_;
  }

 private:
  void fill(const Projection& projection, Machine& machine) {
    const std::int64_t at_once = kernels::rows_packed_at_once(projection.format);
    const std::vector<bf16_t> rows =
        random_bf16(static_cast<std::size_t>(at_once * projection.k), 0.02F, 1);
    for (std::int64_t i = machine.cold_copies(projection.bytes()); i > 0; --i) {
      Result<ops::PackedLinear> packed =
          ops::PackedLinear::allocate(projection.format, projection.n, projection.k);
      SLUICE_CHECK(packed.has_value());
      machine.pool().for_ranges(projection.n, at_once, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; row += at_once) {
          packed->set_rows(row, std::min(at_once, end - row), {.values = rows.data()});
        }
      });
      copies_.push_back(std::move(*packed));
    }
  }

  std::string name_;
  kernels::WeightFormat format_ = kernels::WeightFormat::bf16;
  std::vector<ops::PackedLinear> copies_;
};

std::vector<Projection> projections_of(std::string_view shape, std::string_view label) {
  constexpr std::int64_t kOutputsMin = 128;  // the gates of a few heads are no load
  const ModelConfig config = released_config(shape, 4).value();
  std::vector<Projection> projections;
  for (const TensorSpec& spec : list_tensors(config, "model.")) {
    if (spec.role != TensorRole::matrix || spec.name == "lm_head.weight" ||
        spec.shape[0] < kOutputsMin) {
      continue;
    }
    std::string_view name = spec.name;  // "model.layers.3.mlp.down_proj.weight"
    name.remove_prefix(std::string_view("model.layers.0.").size());
    name.remove_suffix(std::string_view(".weight").size());
    const bool sliced =
        name.ends_with("o_proj") || name.ends_with("out_proj") || name.ends_with("down_proj");
    Projection projection{
        .name = fmt::format("{}/{}", label, name),
        .n = spec.shape[0],
        .k = spec.shape[1],
        .reduction = sliced ? ops::Reduction::row_parallel : ops::Reduction::whole};
    if (std::ranges::none_of(
            projections, [&](const Projection& other) { return other.same_work(projection); })) {
      projections.push_back(std::move(projection));
    }
  }
  return projections;
}

// Activations, results and the turn of the copies.
struct Product {
  Product(const Projection& projection, std::int64_t rows)
      : x(random_bf16(static_cast<std::size_t>(rows * kernels::pad32(projection.k)), 1.0F, 3)),
        tiles(static_cast<std::size_t>(kernels::row_tiles_elements(rows, projection.k))),
        quantised(static_cast<std::size_t>(kernels::int_rows_bytes(rows, projection.k))),
        scales(static_cast<std::size_t>(rows)),
        out(static_cast<std::size_t>(rows * projection.n)) {}

  std::vector<bf16_t> x;
  std::vector<bf16_t> tiles;
  std::vector<std::int8_t> quantised;
  std::vector<float> scales;
  std::vector<float> out;
  std::size_t turn = 0;
};

KernelCase product_case(const Projection& projection, std::int64_t rows,
                        const std::shared_ptr<WeightShelf>& shelf) {
  const auto elements = static_cast<double>(projection.n * projection.k);
  return {.name = fmt::format("gemm_{}/{}/{}x{}/M{}", kernels::to_string(projection.format),
                              projection.name, projection.n, projection.k, rows),
          .flops = 2.0 * static_cast<double>(rows) * elements,
          .bytes = static_cast<double>(projection.bytes()),
          .prepare = [=](Machine& machine) -> Body {
            const std::vector<ops::PackedLinear>* copies = &shelf->copies(projection, machine);
            const auto product = std::make_shared<Product>(projection, rows);
            return [=, &machine] {
              const ops::PackedLinear& weight = (*copies)[product->turn++ % copies->size()];
              ops::LinearInput input(product->x.data(), rows, projection.k,
                                     {.tiles = product->tiles.data(),
                                      .quantised = product->quantised.data(),
                                      .scales = product->scales.data()});
              ops::linear(machine.table(), machine.pool(), input, weight, projection.reduction,
                          product->out.data());
            };
          }};
}

}  // namespace

std::vector<KernelCase> gemm_cases() {
  const auto shelf = std::make_shared<WeightShelf>();
  std::vector<KernelCase> cases;
  const auto add = [&](Projection projection, std::initializer_list<std::int64_t> rows) {
    for (const kernels::WeightFormat format : kernels::kWeightFormats) {
      projection.format = format;
      for (const std::int64_t m : rows) {
        cases.push_back(product_case(projection, m, shelf));
      }
    }
  };
  for (const auto& [shape, label] :
       {std::pair("qwen3.5-0.8b", "0.8b"), std::pair("qwen3.6-27b", "27b")}) {
    for (const Projection& projection : projections_of(shape, label)) {
      add(projection, {1, 4, 16, 64, 512});
    }
  }
  const ModelConfig small = released_config("qwen3.5-0.8b", 4).value();
  add({.name = "0.8b/lm_head",
       .n = small.vocab_size,
       .k = small.hidden_size,
       .reduction = ops::Reduction::whole},
      {1, 4, 16});
  return cases;
}

}  // namespace sluice::bench
