#include "ops/rows.h"

#include <algorithm>

namespace sluice::ops {

void rms_norm(const kernels::KernelTable& table, ThreadPool& pool, const float* x,
              std::int64_t rows, std::int64_t size, const float* weight, float eps, bf16_t* y) {
  const std::int64_t y_stride = kernels::pad32(size);
  pool.for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      table.rms_norm({.x = x + row * size,
                      .weight = weight,
                      .y = y + row * y_stride,
                      .size = size,
                      .eps = eps});
    }
  });
}

void add(const kernels::KernelTable& table, ThreadPool& pool, float* x, const float* y,
         std::int64_t rows, std::int64_t size) {
  pool.for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    table.add(x + begin * size, y + begin * size, (end - begin) * size);
  });
}

void silu_mul(const kernels::KernelTable& table, ThreadPool& pool, const float* gate,
              const float* up, std::int64_t rows, std::int64_t size, bf16_t* y) {
  const std::int64_t y_stride = kernels::pad32(size);
  pool.for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      table.silu_mul(gate + row * size, up + row * size, y + row * y_stride, size);
      std::fill(y + row * y_stride + size, y + (row + 1) * y_stride, bf16_t{0});
    }
  });
}

void layer_norm(const kernels::KernelTable& table, ThreadPool& pool, const float* x,
                std::int64_t rows, std::int64_t size, const float* weight, const float* bias,
                float eps, bf16_t* y) {
  const std::int64_t y_stride = kernels::pad32(size);
  pool.for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      table.layer_norm({.x = x + row * size,
                        .weight = weight,
                        .bias = bias,
                        .y = y + row * y_stride,
                        .size = size,
                        .y_size = y_stride,
                        .eps = eps});
    }
  });
}

void add_with_bias(const kernels::KernelTable& table, ThreadPool& pool, float* x, const float* y,
                   const float* bias, std::int64_t rows, std::int64_t size) {
  pool.for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      table.add_with_bias(x + row * size, y + row * size, bias, size);
    }
  });
}

void bias_gelu(const kernels::KernelTable& table, ThreadPool& pool, Gelu form, const float* x,
               const float* bias, std::int64_t rows, std::int64_t size, bf16_t* y) {
  const std::int64_t y_stride = kernels::pad32(size);
  const auto kernel = form == Gelu::exact ? table.bias_gelu : table.bias_gelu_tanh;
  pool.for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      kernel(x + row * size, bias, y + row * y_stride, size);
      std::fill(y + row * y_stride + size, y + (row + 1) * y_stride, bf16_t{0});
    }
  });
}

}  // namespace sluice::ops
