// The gated delta rule, anchored form GDN-AMX2 (ref/gdn.cpp says what it computes).

struct GdnScratch {
  alignas(64) Operand k[kGdnChunk * kGdnHeadDimMax];
  alignas(64) Operand q[kGdnChunk * kGdnHeadDimMax];
  alignas(64) float ks[kGdnChunk * kGdnHeadDimMax];  // S^T k and S^T q at the anchor
  alignas(64) float qs[kGdnChunk * kGdnHeadDimMax];
  alignas(64) float a[kGdnChunk * kGdnChunk];  // decayed k_j . k_t, row t
  alignas(64) float b[kGdnChunk * kGdnChunk];  // decayed k_j . q_t
};

SLUICE_INLINE float decay_since_anchor(double g) {
  return kernels::exp_f32(static_cast<float>(g));
}

// What rows make of one panel of the state: x . lo, then continued with x . hi.
SLUICE_INLINE void state_product(const Operand* x, std::int64_t x_stride, const bf16_t* lo,
                                 const bf16_t* hi, std::int64_t steps, float* out,
                                 std::int64_t out_stride, std::int64_t rows) {
  product_panel(x, x_stride, lo, steps, nullptr, out, out_stride, rows);
  product_panel(x, x_stride, hi, steps, out, out, out_stride, rows);
}

// u_t and o_t of one row, 16 kVectors value channels from c on: chains over the tail.
template <int kVectors>
SLUICE_INLINE void tail_chains(const GdnChunkArgs& args, const GdnScratch& scratch,
                               std::int64_t row, std::int64_t c, float since_anchor, float* tail_u,
                               std::int64_t width) {
  const std::int64_t t = args.m0 + row;
  const float* a = scratch.a + row * kGdnChunk;
  const float* b = scratch.b + row * kGdnChunk;
  const V16 e = set1(since_anchor);
  V16 r[kVectors];
  V16 o[kVectors];
#pragma GCC unroll 4
  for (int i = 0; i < kVectors; ++i) {
    const std::int64_t at = c + 16 * i;
    r[i] = fnma(e, load(scratch.ks + row * width + at),
                load_first(args.v + row * args.v_stride + at, args.layout.value_dim - at));
    o[i] = mul(e, load(scratch.qs + row * width + at));
  }
  for (std::int64_t j = 0; j < t; ++j) {
    const V16 a_j = set1(a[j]);
    const V16 b_j = set1(b[j]);
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      const V16 u = load(tail_u + j * width + c + 16 * i);
      r[i] = fnma(a_j, u, r[i]);
      o[i] = fma(b_j, u, o[i]);
    }
  }
  const V16 beta = set1(args.beta[row * args.gate_stride]);
  const V16 scale = set1(1.0F / __builtin_sqrtf(static_cast<float>(args.layout.key_dim)));
#pragma GCC unroll 4
  for (int i = 0; i < kVectors; ++i) {
    const std::int64_t at = c + 16 * i;
    const V16 u = mul(beta, r[i]);
    store(tail_u + t * width + at, u);
    store_first(args.out + row * args.out_stride + at, mul(scale, fma(set1(b[t]), u, o[i])),
                args.layout.value_dim - at);
  }
}

static void tail_row(const GdnChunkArgs& args, const GdnScratch& scratch, std::int64_t row,
                     float since_anchor, float* tail_u, std::int64_t width) {
  std::int64_t c = 0;
  for (; c + 16 * kChainVectors <= args.layout.value_dim; c += 16 * kChainVectors) {
    tail_chains<kChainVectors>(args, scratch, row, c, since_anchor, tail_u, width);
  }
  for (; c < args.layout.value_dim; c += 16) {
    tail_chains<1>(args, scratch, row, c, since_anchor, tail_u, width);
  }
}

static void gdn_chunk(const GdnChunkArgs& args) noexcept {
  GdnScratch scratch;
  auto* lo = reinterpret_cast<bf16_t*>(args.value_head);
  bf16_t* hi = lo + args.layout.plane_elements();
  auto* tail_u = reinterpret_cast<float*>(args.value_head + args.layout.tail_u_offset());
  auto* tail_g = reinterpret_cast<double*>(args.value_head + args.layout.tail_g_offset());
  const std::int64_t k_width = pad32(args.layout.key_dim);
  const std::int64_t v_width = pad32(args.layout.value_dim);
  const std::int64_t steps = k_width / kStepK;
  const std::int64_t panels = v_width / kPanelColumns;

  const Operand* k = operands(args.k, args.n * k_width, scratch.k);
  const Operand* q = operands(args.q, args.n * k_width, scratch.q);
  const ProductUnit unit(args.n);
  for (std::int64_t p = 0; p < panels; ++p) {
    const std::int64_t at = p * steps * kStepElements;
    const std::int64_t column = p * kPanelColumns;
    state_product(k, k_width, lo + at, hi + at, steps, scratch.ks + column, v_width, args.n);
    state_product(q, k_width, lo + at, hi + at, steps, scratch.qs + column, v_width, args.n);
  }
  product_panel(k, k_width, args.tail_k, steps, nullptr, scratch.a, kGdnChunk, args.n);
  product_panel(q, k_width, args.tail_k, steps, nullptr, scratch.b, kGdnChunk, args.n);

  double g = args.m0 == 0 ? 0.0 : tail_g[args.m0 - 1];
  for (std::int64_t row = 0; row < args.n; ++row) {
    const std::int64_t t = args.m0 + row;
    g = g + static_cast<double>(args.g[row * args.gate_stride]);
    tail_g[t] = g;
    for (std::int64_t j = 0; j <= t; j += 16) {  // lanes beyond t are not read
      const V16 d = exp_f32(diff_f64(g, tail_g + j));
      float* a = scratch.a + row * kGdnChunk + j;
      float* b = scratch.b + row * kGdnChunk + j;
      store(a, mul(d, load(a)));
      store(b, mul(d, load(b)));
    }
    tail_row(args, scratch, row, decay_since_anchor(g), tail_u, v_width);
  }
}

// Decayed u of the tail as two packed bf16 operands (N = value channel, K = tail row).
static void pack_decayed_u(const float* tail_u, const double* tail_g, std::int64_t width,
                           bf16_t* high, bf16_t* low) {
  alignas(64) float w[kGdnChunk];
  const double g_last = tail_g[kGdnChunk - 1];
  for (std::int64_t j = 0; j < kGdnChunk; j += 16) {
    store(w + j, exp_f32(diff_f64(g_last, tail_g + j)));
  }
  for (std::int64_t c = 0; c < width; c += 16) {
    const std::int64_t tile = c / 16 * kTileElements;
    for (std::int64_t j = 0; j < kGdnChunk; j += 2) {
      const V16 x0 = mul(set1(w[j]), load(tail_u + j * width + c));
      const V16 x1 = mul(set1(w[j + 1]), load(tail_u + (j + 1) * width + c));
      store_split(high + tile + j * 16, low + tile + j * 16, x0, x1);
    }
  }
}

// Rows of K^T for the 32 key channels of one step: [channel][tail row].
static void transpose_keys(const bf16_t* tail_k_step, Operand* k) {
  for (std::int64_t half = 0; half < 2; ++half) {
    for (std::int64_t d = 0; d < kStepK; d += 2) {
      const Pairs pairs = load_pairs(tail_k_step + half * kTileElements + d * 16);
      store_operands(k + d * kGdnChunk + half * 16, even(pairs));
      store_operands(k + (d + 1) * kGdnChunk + half * 16, odd(pairs));
    }
  }
}

static void gdn_fold(const GdnFoldArgs& args) noexcept {
  auto* lo = reinterpret_cast<bf16_t*>(args.value_head);
  bf16_t* hi = lo + args.layout.plane_elements();
  const auto* tail_u =
      reinterpret_cast<const float*>(args.value_head + args.layout.tail_u_offset());
  const auto* tail_g =
      reinterpret_cast<const double*>(args.value_head + args.layout.tail_g_offset());
  const std::int64_t v_width = pad32(args.layout.value_dim);
  const std::int64_t steps = pad32(args.layout.key_dim) / kStepK;

  alignas(64) bf16_t high[kGdnChunk * kGdnHeadDimMax];
  alignas(64) bf16_t low[kGdnChunk * kGdnHeadDimMax];
  pack_decayed_u(tail_u, tail_g, v_width, high, low);
  const V16 keep = set1(decay_since_anchor(tail_g[kGdnChunk - 1]));

  alignas(64) Operand k[kStepK * kGdnChunk];
  alignas(64) float update[kStepK * kPanelColumns];
  const ProductUnit unit(kStepK);
  for (std::int64_t s = 0; s < steps; ++s) {
    transpose_keys(args.tail_k + s * kStepElements, k);
    for (std::int64_t panel = 0; panel < v_width / kPanelColumns; ++panel) {
      const std::int64_t x = panel * kStepElements;
      product_panel(k, kGdnChunk, low + x, 1, nullptr, update, kPanelColumns, kStepK);
      product_panel(k, kGdnChunk, high + x, 1, update, update, kPanelColumns, kStepK);
      for (std::int64_t d = 0; d < kStepK; d += 2) {
        for (std::int64_t half = 0; half < 2; ++half) {
          const std::int64_t at = ((panel * steps + s) * 2 + half) * kTileElements + d / 2 * 32;
          const float* u0 = update + d * kPanelColumns + half * 16;
          const Pairs h = load_pairs(hi + at);
          const Pairs l = load_pairs(lo + at);
          store_split(hi + at, lo + at, fma(keep, add(even(h), even(l)), load(u0)),
                      fma(keep, add(odd(h), odd(l)), load(u0 + kPanelColumns)));
        }
      }
    }
  }
}
