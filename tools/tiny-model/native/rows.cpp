// Row by row: norms, gates, rotary embedding and the loss, with their gradients.  x, dx and weights are fp32,
// inputs and outputs of matrix products bf16.  Gradients of weights are added to.
#include <cmath>
#include <vector>

#include "products.h"

namespace {

constexpr int D = 256, kHeads = 2, kPart = 2 * D, kTurn = 32;
constexpr int kWidth = kHeads * kPart + 2 * D;  // projections: per head q 256 | gate 256, then k, v
constexpr float kEps = 1e-6f;

template <class T>
float length_scale(const T* x, int n) {
  V s = _mm512_setzero_ps();
  for (int i = 0; i < n; i += 16) s = fma(load(x + i), load(x + i), s);
  return 1.f / std::sqrt(sum(s) / float(n) + kEps);
}

// y = x r (1 + w), then channels i and i + 32 turned.
void norm_turn(bf16* y, const bf16* x, const float* w, const float* cos, const float* sin) {
  const V r = all(length_scale(x, D));
  float t[D];
  for (int i = 0; i < D; i += 16) store(t + i, _mm512_mul_ps(_mm512_mul_ps(load(x + i), r), load(w + i) + 1.f));
  for (int i = 0; i < kTurn; i += 16) {
    const V a = load(t + i), b = load(t + kTurn + i), c = load(cos + i), s = load(sin + i);
    store(t + i, a * c - b * s);
    store(t + kTurn + i, b * c + a * s);
  }
  for (int i = 0; i < D; i += 16) store(y + i, load(t + i));
}

void norm_turn_backward(bf16* dx, float* dw, const bf16* dy, const bf16* x, const float* w, const float* cos,
                        const float* sin) {
  float t[D];
  for (int i = 0; i < D; i += 16) store(t + i, load(dy + i));
  for (int i = 0; i < kTurn; i += 16) {
    const V a = load(t + i), b = load(t + kTurn + i), c = load(cos + i), s = load(sin + i);
    store(t + i, a * c + b * s);
    store(t + kTurn + i, b * c - a * s);
  }
  const float r = length_scale(x, D);
  V dot = _mm512_setzero_ps();
  for (int i = 0; i < D; i += 16) {
    const V d = load(t + i), xi = load(x + i);
    store(dw + i, load(dw + i) + d * xi * r);
    store(t + i, d * (load(w + i) + 1.f));
    dot = fma(load(t + i), xi, dot);
  }
  const float along = -sum(dot) * r * r * r / D;
  for (int i = 0; i < D; i += 16) store(dx + i, load(t + i) * r + load(x + i) * along);
}

}  // namespace

extern "C" {

// y = x r (1 + w), bf16; n a multiple of 16.
void norm_forward(const float* x, const float* w, bf16* y, std::int64_t rows, std::int64_t n) {
  for (std::int64_t t = 0; t < rows; ++t, x += n, y += n) {
    const float r = length_scale(x, int(n));
    for (int i = 0; i < n; i += 16) store(y + i, load(x + i) * r * (load(w + i) + 1.f));
  }
}

void norm_backward(const bf16* dy, const float* x, const float* w, float* dx, float* dw, std::int64_t rows,
                   std::int64_t n) {
  for (std::int64_t t = 0; t < rows; ++t, dy += n, x += n, dx += n) {
    const float r = length_scale(x, int(n));
    V dot = _mm512_setzero_ps();
    for (int i = 0; i < n; i += 16) {
      const V d = load(dy + i), xi = load(x + i);
      store(dw + i, load(dw + i) + d * xi * r);
      dot += d * (load(w + i) + 1.f) * xi;
    }
    const float along = -sum(dot) * r * r * r / float(n);
    for (int i = 0; i < n; i += 16)
      store(dx + i, load(dy + i) * (load(w + i) + 1.f) * r + load(x + i) * along);
  }
}

// p[rows][2n] = [gate | up] -> y = silu(gate) up.
void swiglu_forward(const bf16* p, bf16* y, std::int64_t rows, std::int64_t n) {
  for (std::int64_t t = 0; t < rows; ++t, p += 2 * n, y += n)
    for (int i = 0; i < n; i += 16) {
      const V g = load(p + i);
      store(y + i, g * sigmoid(g) * load(p + n + i));
    }
}

void swiglu_backward(const bf16* p, const bf16* dy, bf16* dp, std::int64_t rows, std::int64_t n) {
  for (std::int64_t t = 0; t < rows; ++t, p += 2 * n, dp += 2 * n, dy += n)
    for (int i = 0; i < n; i += 16) {
      const V g = load(p + i), up = load(p + n + i), d = load(dy + i), s = sigmoid(g), open = g * s;
      store(dp + n + i, d * open);
      store(dp + i, d * up * (s + open * (1.f - s)));
    }
}

// q[rows][2][256] and k[rows][256], normed and turned by cos, sin[rows][32]; gate like q, v like k.
void attention_in(const bf16* p, const float* q_norm, const float* k_norm, const float* cos, const float* sin, bf16* q,
                  bf16* k, bf16* v, bf16* gate, std::int64_t rows) {
  for (std::int64_t t = 0; t < rows; ++t, p += kWidth, cos += kTurn, sin += kTurn) {
    for (int h = 0; h < kHeads; ++h) {
      norm_turn(q + (t * kHeads + h) * D, p + h * kPart, q_norm, cos, sin);
      std::memcpy(gate + (t * kHeads + h) * D, p + h * kPart + D, D * sizeof(bf16));
    }
    norm_turn(k + t * D, p + kHeads * kPart, k_norm, cos, sin);
    std::memcpy(v + t * D, p + kHeads * kPart + D, D * sizeof(bf16));
  }
}

void attention_in_backward(const bf16* p, const float* q_norm, const float* k_norm, const float* cos, const float* sin,
                           const bf16* dq, const bf16* dk, const bf16* dv, const bf16* dgate, bf16* dp, float* dq_norm,
                           float* dk_norm, std::int64_t rows) {
  for (std::int64_t t = 0; t < rows; ++t, p += kWidth, dp += kWidth, cos += kTurn, sin += kTurn) {
    for (int h = 0; h < kHeads; ++h) {
      norm_turn_backward(dp + h * kPart, dq_norm, dq + (t * kHeads + h) * D, p + h * kPart, q_norm, cos, sin);
      std::memcpy(dp + h * kPart + D, dgate + (t * kHeads + h) * D, D * sizeof(bf16));
    }
    norm_turn_backward(dp + kHeads * kPart, dk_norm, dk + t * D, p + kHeads * kPart, k_norm, cos, sin);
    std::memcpy(dp + kHeads * kPart + D, dv + t * D, D * sizeof(bf16));
  }
}

// y = o sigmoid(gate), n values.
void gate_forward(const bf16* gate, const bf16* o, bf16* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += 16) store(y + i, load(o + i) * sigmoid(load(gate + i)));
}

void gate_backward(const bf16* gate, const bf16* o, const bf16* dy, bf16* dgate, bf16* dout, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += 16) {
    const V s = sigmoid(load(gate + i)), d = load(dy + i) * s;
    store(dout + i, d);
    store(dgate + i, d * load(o + i) * (1.f - s));
  }
}

// losses[t] = -log p of the target; the logits become the gradient of the weighted sum of losses.
void cross_entropy(bf16* logits, const std::int64_t* targets, const float* weights, float* losses, std::int64_t rows,
                   std::int64_t n) {
  std::vector<float> e(n);
  for (std::int64_t t = 0; t < rows; ++t, logits += n) {
    V most = all(-1e30f), added = _mm512_setzero_ps();
    for (int i = 0; i < n; i += 16) most = _mm512_max_ps(most, load(logits + i));
    const float top = _mm512_reduce_max_ps(most), target = to_float(logits[targets[t]]);
    for (int i = 0; i < n; i += 16) {
      const V x = exp(load(logits + i) - top);
      store(&e[i], x);
      added += x;
    }
    const float total = sum(added), scale = weights[t] / total;
    losses[t] = top + std::log(total) - target;
    e[targets[t]] -= total;
    for (int i = 0; i < n; i += 16) store(logits + i, load(&e[i]) * scale);
  }
}

}  // extern "C"
