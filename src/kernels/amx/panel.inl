// What the delta rule multiplies with (simd/product.inl says what), on tiles: rows stay bf16.
// TDPBF16PS is the canonical step by definition.

using Operand = bf16_t;

SLUICE_INLINE const Operand* operands(const bf16_t* x, std::int64_t /*count*/,
                                      Operand* /*memory*/) {
  return x;
}
SLUICE_INLINE void store_operands(Operand* p, V16 x) {
  store_bf16(p, x);
}

// Tiles for products of 1 to 32 rows, from the first use() to the end of the object.
class ProductUnit {
 public:
  ProductUnit() = default;
  explicit ProductUnit(std::int64_t rows) { use(rows); }
  ~ProductUnit() {
    if (rows_ != 0) {
      SLUICE_TILE_RELEASE();
    }
  }
  ProductUnit(const ProductUnit&) = delete;
  ProductUnit& operator=(const ProductUnit&) = delete;

  void use(std::int64_t rows) {
    if (rows == rows_) {
      return;
    }
    rows_ = rows;
    const std::int64_t upper = rows < kTileRows ? rows : kTileRows;
    const TileConfig config =
        product_config(static_cast<int>(upper), static_cast<int>(rows - upper));
    SLUICE_TILE_BARRIER();
    SLUICE_TILE_CONFIGURE(&config);
    SLUICE_TILE_BARRIER();
  }

 private:
  std::int64_t rows_ = 0;
};

template <bool kHasLower>
SLUICE_INLINE void multiply_panel(const bf16_t* a, std::int64_t a_stride, const bf16_t* panel,
                                  std::int64_t steps, const float* initial, float* c,
                                  std::int64_t c_stride) {
  const bf16_t* lower = a + kTileRows * a_stride;
  if (initial != nullptr) {
    SLUICE_TILE_LOAD(0, initial, c_stride * 4);
    SLUICE_TILE_LOAD(1, initial + 16, c_stride * 4);
  } else {
    SLUICE_TILE_ZERO(0);
    SLUICE_TILE_ZERO(1);
  }
  if constexpr (kHasLower) {
    if (initial != nullptr) {
      SLUICE_TILE_LOAD(2, initial + kTileRows * c_stride, c_stride * 4);
      SLUICE_TILE_LOAD(3, initial + kTileRows * c_stride + 16, c_stride * 4);
    } else {
      SLUICE_TILE_ZERO(2);
      SLUICE_TILE_ZERO(3);
    }
  }
  for (std::int64_t s = 0; s < steps; ++s) {
    SLUICE_TILE_LOAD(4, a + s * kStepK, a_stride * 2);
    SLUICE_TILE_LOAD(6, panel + s * kStepElements, 64);
    SLUICE_TILE_LOAD(7, panel + s * kStepElements + kTileElements, 64);
    SLUICE_TILE_DOT(0, 4, 6);
    SLUICE_TILE_DOT(1, 4, 7);
    if constexpr (kHasLower) {
      SLUICE_TILE_LOAD(5, lower + s * kStepK, a_stride * 2);
      SLUICE_TILE_DOT(2, 5, 6);
      SLUICE_TILE_DOT(3, 5, 7);
    }
  }
  SLUICE_TILE_STORE(0, c, c_stride * 4);
  SLUICE_TILE_STORE(1, c + 16, c_stride * 4);
  if constexpr (kHasLower) {
    SLUICE_TILE_STORE(2, c + kTileRows * c_stride, c_stride * 4);
    SLUICE_TILE_STORE(3, c + kTileRows * c_stride + 16, c_stride * 4);
  }
}

// Strides in elements; tiles are in use for `rows` rows.
static void product_panel(const bf16_t* a, std::int64_t a_stride, const bf16_t* panel,
                          std::int64_t steps, const float* initial, float* c, std::int64_t c_stride,
                          std::int64_t rows) {
  SLUICE_TILE_BARRIER();
  if (rows > kTileRows) {
    multiply_panel<true>(a, a_stride, panel, steps, initial, c, c_stride);
  } else {
    multiply_panel<false>(a, a_stride, panel, steps, initial, c, c_stride);
  }
  SLUICE_TILE_BARRIER();
}
