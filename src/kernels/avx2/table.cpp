// The AVX2 table: the 16-lane source of kernels/simd compiled for this instruction set.
#include "kernels/avx2/table.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/exp_constants.h"
#include "kernels/gelu_constants.h"
#include "kernels/scalar_math.h"

// clang-format off: each part uses the ones above it.
#include "kernels/avx2/begin.h"
#include "kernels/avx2/vec.inl"
#include "kernels/avx2/bytes.inl"
#include "kernels/simd/math.inl"
#include "kernels/simd/product.inl"
#include "kernels/simd/float_weights.inl"
#include "kernels/simd/gemm.inl"
#include "kernels/simd/int_weights.inl"
#include "kernels/simd/gemm_int.inl"
#include "kernels/simd/quantise.inl"
#include "kernels/simd/rows.inl"
#include "kernels/simd/attention.inl"
#include "kernels/simd/gdn.inl"
#include "kernels/simd/encoder.inl"
#include "kernels/simd/table.inl"
// clang-format on

static constexpr KernelTable kTable = make_table("avx2");
#include "kernels/avx2/end.h"

namespace sluice::kernels::avx2 {

const KernelTable* table() {
  return &kTable;
}

}  // namespace sluice::kernels::avx2

#else

namespace sluice::kernels::avx2 {

const KernelTable* table() {
  return nullptr;
}

}  // namespace sluice::kernels::avx2

#endif
