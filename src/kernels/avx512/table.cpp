// The AVX512 table: the 16-lane source of kernels/simd compiled for this instruction set.
#include "kernels/avx512/table.h"

#if defined(__x86_64__)

#if !defined(__clang__)
// GCC 12 reports the "undefined" pass-through operands of its own AVX-512 intrinsics (GCC bug
// 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/exp_constants.h"
#include "kernels/gelu_constants.h"
#include "kernels/scalar_math.h"

// clang-format off: each part uses the ones above it.
#include "kernels/avx512/begin.h"
#include "kernels/avx512/vec.inl"
#include "kernels/avx512/bytes.inl"
#include "kernels/avx512/dot.inl"
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

static constexpr KernelTable kTable = make_table("avx512");
#include "kernels/avx512/end.h"

namespace sluice::kernels::avx512 {

const KernelTable* table() {
  return &kTable;
}

}  // namespace sluice::kernels::avx512

#else

namespace sluice::kernels::avx512 {

const KernelTable* table() {
  return nullptr;
}

}  // namespace sluice::kernels::avx512

#endif
