// Layout work and scalar formulas shared by all tables.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/kernel_table.h"
#include "kernels/scalar_math.h"

namespace sluice::kernels {

void pack_rows(const bf16_t* w, std::int64_t row, std::int64_t rows, std::int64_t k,
               bf16_t* packed) {
  const std::int64_t steps = pad32(k) / kStepK;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t n = row + r;
    bf16_t* half = packed + (n / 32 * steps * 2 + n % 32 / 16) * kTileElements + n % 16 * 2;
    for (std::int64_t i = 0; i < k; ++i) {
      half[i / 32 * kStepElements + i % 32 / 2 * 32 + i % 2] = w[r * k + i];
    }
  }
}

void tile_rows(const bf16_t* x, std::int64_t rows, std::int64_t k_steps, bf16_t* tiles) {
  for (std::int64_t s = 0; s < k_steps; ++s) {
    for (std::int64_t r = 0; r < rows; ++r) {
      std::memcpy(tiles + s * kTileElements + r * kStepK, x + (r * k_steps + s) * kStepK,
                  kStepK * sizeof(bf16_t));
    }
  }
}

void kv_store(const bf16_t* k, const float* v, std::int64_t slot, const KvBlockLayout& layout,
              bf16_t* head) {
  // packed_index() of (slot, c) and of (c, slot), 32 channels at a time: the divisions would take
  // most of the time.
  constexpr std::int64_t kValueSteps = kAttentionBlock / kStepK;
  bf16_t* key = head + packed_index(slot, 0, pad32(layout.head_dim) / kStepK);
  bf16_t* value = head + layout.k_elements() + packed_index(0, slot, kValueSteps);
  for (std::int64_t c = 0; c < layout.head_dim; c += kStepK) {
    const std::int64_t count = std::min(kStepK, layout.head_dim - c);
    for (std::int64_t i = 0; i < count; ++i) {
      key[i / 2 * 32 + i % 2] = k[c + i];
    }
    for (std::int64_t i = 0; i < count; ++i) {
      value[i / 16 * kTileElements + i % 16 * 2] = float_to_bf16(v[c + i]);
    }
    key += kStepElements;
    value += kValueSteps * kStepElements;
  }
}

void gdn_append_keys(const bf16_t* k, std::int64_t m0, std::int64_t n, std::int64_t key_dim,
                     bf16_t* tail_k) {
  const std::int64_t steps = pad32(key_dim) / kStepK;
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t d = 0; d < key_dim; ++d) {
      tail_k[packed_index(m0 + row, d, steps)] = k[row * pad32(key_dim) + d];
    }
  }
}

void gdn_gates(const float* a, const float* b, const float* decay_rate, const float* dt_bias,
               float* g, float* beta, std::int64_t heads) {
  for (std::int64_t h = 0; h < heads; ++h) {
    beta[h] = sigmoid_f32(b[h]);
    g[h] = decay_rate[h] * softplus_f32(a[h] + dt_bias[h]);
  }
}

}  // namespace sluice::kernels
