#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/ref/canonical.h"
#include "kernels/ref/table.h"
#include "kernels/scalar_math.h"

namespace sluice::kernels::ref {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Softmax-weighted values of one row over a run of keys, not yet divided by the sum of weights.
struct Partial {
  float max = kMinusInfinity;
  float sum = 0.0F;
  float values[kHeadDimMax] = {};
};

// One block of 64 keys whose first key has absolute position `first_key`.
void add_block(Partial& state, const AttentionArgs& args, const bf16_t* q, const bf16_t* block,
               std::int64_t seen) {
  const KvBlockLayout layout{args.head_dim};
  const std::int64_t steps = pad32(args.head_dim) / kStepK;
  float scores[kAttentionBlock];
  float max = state.max;
  for (std::int64_t key = 0; key < kAttentionBlock; ++key) {
    const float score = args.scale * product(0.0F, q, block, key, steps, 0, steps);
    scores[key] = key < seen ? score : kMinusInfinity;
    max = scores[key] > max ? scores[key] : max;
  }
  float lanes[16] = {};
  bf16_t weights[kAttentionBlock];
  for (std::int64_t key = 0; key < kAttentionBlock; ++key) {
    scores[key] = exp_f32(scores[key] - max);  // 0 for keys not seen
    weights[key] = float_to_bf16(scores[key]);
  }
  for (std::int64_t lane = 0; lane < 16; ++lane) {
    lanes[lane] = (scores[lane] + scores[lane + 16]) + (scores[lane + 32] + scores[lane + 48]);
  }
  const float rescale = exp_f32(state.max - max);
  state.sum = std::fma(state.sum, rescale, fold_lanes(lanes));
  state.max = max;
  const bf16_t* values = block + layout.k_elements();
  for (std::int64_t c = 0; c < args.head_dim; ++c) {
    state.values[c] = product(state.values[c] * rescale, weights, values, c, 2, 0, 2);
  }
}

void merge(Partial& total, const Partial& next, std::int64_t head_dim) {
  const float max = next.max > total.max ? next.max : total.max;
  const float a = exp_f32(total.max - max);
  const float b = exp_f32(next.max - max);
  total.max = max;
  total.sum = std::fma(next.sum, b, total.sum * a);
  for (std::int64_t c = 0; c < head_dim; ++c) {
    total.values[c] = std::fma(next.values[c], b, total.values[c] * a);
  }
}

}  // namespace

void attention(const AttentionArgs& args) noexcept {
  for (std::int64_t row = 0; row < args.rows; ++row) {
    const bf16_t* q = args.q + row * pad32(args.head_dim);
    const std::int64_t visible = args.visible[row];
    Partial total;
    for (std::int64_t begin = 0; begin < visible; begin += kAttentionSegment) {
      const std::int64_t end = std::min(visible, begin + kAttentionSegment);
      Partial segment;
      for (std::int64_t key = begin; key < end; key += kAttentionBlock) {
        const std::int64_t index = key / kAttentionBlock;
        const std::int64_t id = args.block_table == nullptr ? index : args.block_table[index];
        const auto* block =
            reinterpret_cast<const bf16_t*>(args.kv_blocks + id * args.kv_block_stride);
        add_block(segment, args, q, block, std::min(kAttentionBlock, end - key));
      }
      if (begin == 0) {
        total = segment;
      } else {
        merge(total, segment, args.head_dim);
      }
    }
    float* out = args.out + args.out_offset[row];
    for (std::int64_t c = 0; c < args.head_dim; ++c) {
      out[c] = total.values[c] / total.sum;
    }
  }
}

}  // namespace sluice::kernels::ref
