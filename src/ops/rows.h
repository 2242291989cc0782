// Row-wise operators over the pool: norms, residual add, activations. Each row is computed alone.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"
#include "platform/thread_pool.h"

namespace sluice::ops {

// y[rows, pad32(size)] = bf16(RMSNorm(x[rows, size]) * weight).
void rms_norm(const kernels::KernelTable& table, ThreadPool& pool, const float* x,
              std::int64_t rows, std::int64_t size, const float* weight, float eps, bf16_t* y);

// x += y over rows * size values.
void add(const kernels::KernelTable& table, ThreadPool& pool, float* x, const float* y,
         std::int64_t rows, std::int64_t size);

// The vision encoder's: LayerNorm with bias, y[rows, pad32(size)]; x += y + bias over rows * size
// values; y[rows, pad32(size)] = bf16(gelu(x + bias)), the exact one or the form with tanh.
void layer_norm(const kernels::KernelTable& table, ThreadPool& pool, const float* x,
                std::int64_t rows, std::int64_t size, const float* weight, const float* bias,
                float eps, bf16_t* y);
void add_with_bias(const kernels::KernelTable& table, ThreadPool& pool, float* x, const float* y,
                   const float* bias, std::int64_t rows, std::int64_t size);
enum class Gelu { exact, tanh };
void bias_gelu(const kernels::KernelTable& table, ThreadPool& pool, Gelu form, const float* x,
               const float* bias, std::int64_t rows, std::int64_t size, bf16_t* y);

// y[rows, pad32(size)] = bf16(silu(gate) * up), padding zeroed.
void silu_mul(const kernels::KernelTable& table, ThreadPool& pool, const float* gate,
              const float* up, std::int64_t rows, std::int64_t size, bf16_t* y);

}  // namespace sluice::ops
