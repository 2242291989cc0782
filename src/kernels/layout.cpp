// Layout work and scalar formulas shared by all tables.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/kernel_table.h"
#include "kernels/scalar_math.h"

namespace sluice::kernels {

namespace {

// Puts a row of `size` values where packed_index(n, k, steps) says, k = 0 .. size - 1; `column`
// points to k = 0. Two neighbours are copied at a time: to compute every place takes far longer.
void store_packed_row(const bf16_t* row, std::int64_t size, bf16_t* column) {
  std::int64_t k = 0;
  for (; k + 2 <= size; k += 2) {
    std::memcpy(column + k / 32 * kStepElements + k % 32 * 16, row + k, 2 * sizeof(bf16_t));
  }
  if (k < size) {
    column[k / 32 * kStepElements + k % 32 * 16] = row[k];
  }
}

}  // namespace

void pack_rows(const bf16_t* w, std::int64_t row, std::int64_t rows, std::int64_t k,
               bf16_t* packed) {
  const std::int64_t steps = pad32(k) / kStepK;
  for (std::int64_t r = 0; r < rows; ++r) {
    store_packed_row(w + r * k, k, packed + packed_index(row + r, 0, steps));
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
  store_packed_row(k, layout.head_dim,
                   head + packed_index(slot, 0, pad32(layout.head_dim) / kStepK));
  constexpr std::int64_t kValueSteps = kAttentionBlock / kStepK;
  bf16_t* values = head + layout.k_elements() + packed_index(0, slot, kValueSteps);
  for (std::int64_t c = 0; c < layout.head_dim; c += 16) {
    bf16_t* half = values + c / 32 * kValueSteps * kStepElements + c % 32 / 16 * kTileElements;
    const std::int64_t count = std::min<std::int64_t>(16, layout.head_dim - c);
    for (std::int64_t i = 0; i < count; ++i) {
      half[2 * i] = float_to_bf16(v[c + i]);
    }
  }
}

void gdn_append_keys(const bf16_t* k, std::int64_t m0, std::int64_t n, std::int64_t key_dim,
                     bf16_t* tail_k) {
  const std::int64_t steps = pad32(key_dim) / kStepK;
  for (std::int64_t row = 0; row < n; ++row) {
    store_packed_row(k + row * pad32(key_dim), key_dim, tail_k + packed_index(m0 + row, 0, steps));
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
