// The canonical product on packed operands: rows of fp32-widened bf16 times half panels.

// Widens `count` bf16 (a multiple of 16) to fp32.
SLUICE_INLINE void widen(const bf16_t* x, std::int64_t count, float* y) {
  for (std::int64_t i = 0; i < count; i += 16) {
    store(y + i, load_bf16(x + i));
  }
}

// A row of product_panel holds these; the delta rule makes its rows with what follows, so that it
// is the same source where tiles multiply (amx/panel.inl).
using Operand = float;

// `count` bf16 (a multiple of 16) as operands, in `memory` unless they are some already.
SLUICE_INLINE const Operand* operands(const bf16_t* x, std::int64_t count, Operand* memory) {
  widen(x, count, memory);
  return memory;
}
// Sixteen values that bf16 holds.
SLUICE_INLINE void store_operands(Operand* p, V16 x) {
  store(p, x);
}

// Pairs of fp32 values as pairs of bf16 that add up to them, or nearly: what rounding left of the
// high parts becomes the low ones.
SLUICE_INLINE void store_split(bf16_t* high, bf16_t* low, V16 x0, V16 x1) {
  const V16 h0 = to_bf16_and_back(x0);
  const V16 h1 = to_bf16_and_back(x1);
  store_pairs(high, h0, h1);
  store_pairs(low, sub(x0, h0), sub(x1, h1));
}

// Exists while products of `rows` rows are made.
struct ProductUnit {
  explicit ProductUnit(std::int64_t /*rows*/) {}
};

// One step: sum[r][h] += even chain + odd chain over 32 k. a: row r at a + r * a_stride.
// tile: first half panel of this step; further halves follow at kTileElements.
template <int kRows, int kHalves>
SLUICE_INLINE void product_step(V16 (&sum)[kRows][kHalves], const float* a, std::int64_t a_stride,
                                const bf16_t* tile) {
  V16 even_sum[kRows][kHalves];
  V16 odd_sum[kRows][kHalves];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) {
      even_sum[r][h] = zero();
      odd_sum[r][h] = zero();
    }
  }
#pragma GCC unroll 16
  for (int pair = 0; pair < 16; ++pair) {
    V16 w_even[kHalves];
    V16 w_odd[kHalves];
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) {
      const Pairs pairs = load_pairs(tile + h * kTileElements + pair * 32);
      w_even[h] = even(pairs);
      w_odd[h] = odd(pairs);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const V16 a_even = set1(a[r * a_stride + 2 * pair]);
      const V16 a_odd = set1(a[r * a_stride + 2 * pair + 1]);
#pragma GCC unroll 2
      for (int h = 0; h < kHalves; ++h) {
        even_sum[r][h] = fma(a_even, w_even[h], even_sum[r][h]);
        odd_sum[r][h] = fma(a_odd, w_odd[h], odd_sum[r][h]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) {
      sum[r][h] = add(sum[r][h], add(even_sum[r][h], odd_sum[r][h]));
    }
  }
}

// c[r][0 .. 32) = initial[r] + product over `steps` steps of one panel (32 columns); initial may be
// null for zero. c may be initial.
template <int kRows>
SLUICE_INLINE void product_panel_rows(const float* a, std::int64_t a_stride, const bf16_t* panel,
                                      std::int64_t steps, const float* initial, float* c,
                                      std::int64_t c_stride) {
  for (int half = 0; half < 2; half += kProductHalves) {
    V16 sum[kRows][kProductHalves];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int h = 0; h < kProductHalves; ++h) {
        sum[r][h] = initial == nullptr ? zero() : load(initial + r * c_stride + (half + h) * 16);
      }
    }
    for (std::int64_t s = 0; s < steps; ++s) {
      product_step<kRows, kProductHalves>(sum, a + 32 * s, a_stride,
                                          panel + s * kStepElements + half * kTileElements);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int h = 0; h < kProductHalves; ++h) {
        store(c + r * c_stride + (half + h) * 16, sum[r][h]);
      }
    }
  }
}

// The same for any number of rows. Rows do not see one another, so their grouping is free.
static void product_panel(const Operand* a, std::int64_t a_stride, const bf16_t* panel,
                          std::int64_t steps, const float* initial, float* c, std::int64_t c_stride,
                          std::int64_t rows) {
  while (rows > 0) {
    const std::int64_t group = rows >= kProductRows ? kProductRows : 1;
    if (group == kProductRows) {
      product_panel_rows<kProductRows>(a, a_stride, panel, steps, initial, c, c_stride);
    } else {
      product_panel_rows<1>(a, a_stride, panel, steps, initial, c, c_stride);
    }
    a += group * a_stride;
    c += group * c_stride;
    initial = initial == nullptr ? nullptr : initial + group * c_stride;
    rows -= group;
  }
}
