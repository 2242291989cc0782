// What attention and the delta rule multiply with (simd/product.inl says what), on tiles: rows stay
// bf16. TDPBF16PS is the canonical step by definition.

using Operand = bf16_t;

SLUICE_INLINE const Operand* operands(const bf16_t* x, std::int64_t /*count*/,
                                      Operand* /*memory*/) {
  return x;
}
SLUICE_INLINE void store_operands(Operand* p, V16 x) {
  store_bf16(p, x);
}

// kBothHalves: else of the first 16 columns alone.
template <bool kHasLower, bool kBothHalves>
SLUICE_INLINE void multiply_panel(const bf16_t* a, std::int64_t a_stride, const bf16_t* panel,
                                  std::int64_t steps, const float* initial, float* c,
                                  std::int64_t c_stride) {
  const bf16_t* lower = a + kTileRows * a_stride;
  const float* lower_initial = initial == nullptr ? nullptr : initial + kTileRows * c_stride;
  float* lower_c = c + kTileRows * c_stride;
  if (initial == nullptr) {
    SLUICE_TILE_ZERO(0);
    SLUICE_TILE_ZERO(1);
    if constexpr (kHasLower) {
      SLUICE_TILE_ZERO(2);
      SLUICE_TILE_ZERO(3);
    }
  } else {
    SLUICE_TILE_LOAD(0, initial, c_stride * 4);
    if constexpr (kBothHalves) {
      SLUICE_TILE_LOAD(1, initial + 16, c_stride * 4);
    }
    if constexpr (kHasLower) {
      SLUICE_TILE_LOAD(2, lower_initial, c_stride * 4);
    }
    if constexpr (kHasLower && kBothHalves) {
      SLUICE_TILE_LOAD(3, lower_initial + 16, c_stride * 4);
    }
  }
  for (std::int64_t s = 0; s < steps; ++s) {
    SLUICE_TILE_LOAD(4, a + s * kStepK, a_stride * 2);
    SLUICE_TILE_LOAD(6, panel + s * kStepElements, 64);
    SLUICE_TILE_DOT(0, 4, 6);
    if constexpr (kBothHalves) {
      SLUICE_TILE_LOAD(7, panel + s * kStepElements + kTileElements, 64);
      SLUICE_TILE_DOT(1, 4, 7);
    }
    if constexpr (kHasLower) {
      SLUICE_TILE_LOAD(5, lower + s * kStepK, a_stride * 2);
      SLUICE_TILE_DOT(2, 5, 6);
    }
    if constexpr (kHasLower && kBothHalves) {
      SLUICE_TILE_DOT(3, 5, 7);
    }
  }
  SLUICE_TILE_STORE(0, c, c_stride * 4);
  if constexpr (kBothHalves) {
    SLUICE_TILE_STORE(1, c + 16, c_stride * 4);
  }
  if constexpr (kHasLower) {
    SLUICE_TILE_STORE(2, lower_c, c_stride * 4);
  }
  if constexpr (kHasLower && kBothHalves) {
    SLUICE_TILE_STORE(3, lower_c + 16, c_stride * 4);
  }
}

// Strides in elements; tiles are in use for `rows` rows.
template <bool kBothHalves = true>
static void product_panel(const bf16_t* a, std::int64_t a_stride, const bf16_t* panel,
                          std::int64_t steps, const float* initial, float* c, std::int64_t c_stride,
                          std::int64_t rows) {
  SLUICE_TILE_BARRIER();
  if (rows > kTileRows) {
    multiply_panel<true, kBothHalves>(a, a_stride, panel, steps, initial, c, c_stride);
  } else {
    multiply_panel<false, kBothHalves>(a, a_stride, panel, steps, initial, c, c_stride);
  }
  SLUICE_TILE_BARRIER();
}
