// Gradients of weight matrices: dw[n][k] += dy[rows][n]' x[rows][k], dw fp32, with AMX.
//
// The sum runs over rows, so dy is turned and x paired, for a block of rows at a time that stays in the
// cache.  rows and k are multiples of 64.
#include <cstdlib>

#include "packing.h"

namespace {

constexpr int kRows = 64, kColumns = 32, kWide = 64, kBlock = 512;

// to[32][kBlock] = `columns` columns of dy[rows][stride], turned; zeros beyond.
void turn(bf16* to, const bf16* dy, std::int64_t stride, int columns, int rows) {
  alignas(64) bf16 block[kRows * kColumns], paired[kRows * kColumns], turned[kColumns * kRows];
  const __mmask32 mask = columns == kColumns ? ~0u : (1u << columns) - 1;
  for (int from = 0; from < rows; from += kRows) {
    for (int t = 0; t < kRows; ++t)
      _mm512_store_si512(block + t * kColumns, _mm512_maskz_loadu_epi16(mask, dy + (from + t) * stride));
    pack_transposed<kRows, kColumns>(paired, block, kColumns);
    unpair<kColumns, kRows>(turned, paired);
    for (int c = 0; c < kColumns; ++c) std::memcpy(to + c * kBlock + from, turned + c * kRows, kRows * sizeof(bf16));
  }
}

}  // namespace

extern "C" void linear_gradient(const bf16* dy, const bf16* x, float* dw, std::int64_t rows, std::int64_t n,
                                std::int64_t k) {
  const Tiles tiles;
  alignas(64) static bf16 turned[kColumns * kBlock];
  alignas(64) static float sums[kColumns * kWide];
  bf16* const paired = static_cast<bf16*>(std::aligned_alloc(64, kBlock * k * sizeof(bf16)));
  for (std::int64_t from = 0; from < rows; from += kBlock) {
    const int some = int(rows - from < kBlock ? rows - from : kBlock);
    for (std::int64_t c = 0; c < k; c += kWide)
      for (int t = 0; t < some; t += kRows)
        pack<kRows, kWide>(paired + c * kBlock + t * kWide, x + (from + t) * k + c, int(k));
    for (std::int64_t row = 0; row < n; row += kColumns) {
      const int columns = n - row < kColumns ? int(n - row) : kColumns;
      turn(turned, dy + from * n + row, n, columns, some);
      for (std::int64_t c = 0; c < k; c += kWide) {
        float* to = dw + row * k + c;
        if (columns == kColumns) {
          gemm_of<kColumns, kWide, true>(to, int(k), turned, kBlock, paired + c * kBlock, 2 * kWide, some);
          continue;
        }
        gemm_of<kColumns, kWide, false>(sums, kWide, turned, kBlock, paired + c * kBlock, 2 * kWide, some);
        for (int r = 0; r < columns; ++r)
          for (int i = 0; i < kWide; ++i) to[r * k + i] += sums[r * kWide + i];
      }
    }
  }
  std::free(paired);
}
