// The AVX-512 table of CPUs with VNNI: the same, but for faster integer products.
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
#include "kernels/avx512/begin_vnni.h"
#include "kernels/avx512/vec.inl"
#include "kernels/avx512/bytes.inl"
#include "kernels/avx512/dot_vnni.inl"
#include "kernels/simd/math.inl"
#include "kernels/simd/int_weights.inl"
#include "kernels/simd/gemm_int.inl"
#include "kernels/avx512/end_vnni.h"
// clang-format on

namespace sluice::kernels::avx512 {

const KernelTable* vnni_table() {
  static const KernelTable kTable = [] {
    KernelTable table = *avx512::table();
    table.gemm_int8 = vnni::gemm_int8;
    table.gemm_int4 = vnni::gemm_int4;
    return table;
  }();
  return &kTable;
}

}  // namespace sluice::kernels::avx512

#else

namespace sluice::kernels::avx512 {

const KernelTable* vnni_table() {
  return nullptr;
}

}  // namespace sluice::kernels::avx512

#endif
