// One thing that bench/kernels measures.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/kernels/machine.h"

namespace sluice::bench {

// One call of the operator over the pool. Owns its data.
using Body = std::function<void()>;

struct KernelCase {
  std::string name;    // "gemm_bf16/27b/mlp.down_proj/5120x17408/M512"
  double flops = 0.0;  // of one call, as in model/step_cost.h; 0: not counted
  double bytes = 0.0;  // read in one call; of a product its weights alone
  std::function<Body(Machine&)> prepare;
};

// Products of the projections of the 0.8B and the 27B model in every weight format, M = 1, 4, 16,
// 64, 512. The tiles of the rows are made in every call.
std::vector<KernelCase> gemm_cases();
// The delta rule with its convolution and norms: 512 rows, and one row.
std::vector<KernelCase> gated_delta_cases();
// Attention with its norms, rotation and gate: 512 rows at 8K keys, one row at 4K and 32K.
std::vector<KernelCase> attention_cases();
// Norm, residual add and SwiGLU over 512 rows: from cache, where they run in a model.
std::vector<KernelCase> row_cases();
// Three blocks of the largest released vision tower with patch embedding and merger: pictures of
// 0.25, 1 and 4 megapixels.
std::vector<KernelCase> vision_cases();

}  // namespace sluice::bench
