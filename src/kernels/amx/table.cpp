// The AMX table: tile products over the AVX-512 table.
#include "kernels/amx/table.h"

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

#include "kernels/amx/tile_config.h"
#include "kernels/avx512/table.h"
#include "kernels/exp_constants.h"
#include "kernels/gelu_constants.h"
#include "kernels/scalar_math.h"

// GCC's tile intrinsics do not tell the compiler which memory they touch: barriers keep stores that
// feed them before, and loads of their results after.
#define SLUICE_TILE_BARRIER() asm volatile("" ::: "memory")
#define SLUICE_TILE_CONFIGURE(config) _tile_loadconfig(config)
#define SLUICE_TILE_RELEASE() _tile_release()
#define SLUICE_TILE_ZERO(tile) _tile_zero(tile)
#define SLUICE_TILE_LOAD(tile, base, stride) \
  _tile_loadd(tile, base, static_cast<std::size_t>(stride))
#define SLUICE_TILE_STORE(tile, base, stride) \
  _tile_stored(tile, base, static_cast<std::size_t>(stride))
#define SLUICE_TILE_DOT(sum, a, b) _tile_dpbf16ps(sum, a, b)
#define SLUICE_TILE_DOT_INT8(sum, a, b) _tile_dpbssd(sum, a, b)
// A load whose lines need not stay in the L1 cache.
#define SLUICE_TILE_LOAD_PASSING(tile, base, stride) \
  _tile_stream_loadd(tile, base, static_cast<std::size_t>(stride))
#define SLUICE_TILE_PREFETCH(address) \
  _mm_prefetch(reinterpret_cast<const char*>(address), _MM_HINT_T0)
#define SLUICE_TILE_PREFETCH_L2(address) \
  _mm_prefetch(reinterpret_cast<const char*>(address), _MM_HINT_T1)
#define SLUICE_TILE_PREFETCH_WRITE(address) __builtin_prefetch(address, 1)

// clang-format off
#include "kernels/amx/begin.h"
#include "kernels/avx512/vec.inl"
#include "kernels/avx512/bytes.inl"
#include "kernels/simd/math.inl"
#include "kernels/simd/float_weights.inl"
#include "kernels/simd/int_weights.inl"
#include "kernels/amx/product.inl"
#include "kernels/amx/gemm.inl"
#include "kernels/amx/gemm_int.inl"
#include "kernels/amx/bf16_pair.inl"
#include "kernels/amx/panel.inl"
#include "kernels/amx/attention.inl"
#include "kernels/simd/gdn.inl"
#include "kernels/amx/end.h"
// clang-format on

namespace sluice::kernels::amx {

const KernelTable* table() {
  static const KernelTable kTable = [] {
    KernelTable table = *avx512::vnni_table();
    table.name = "amx";
    table.gemm_bf16 = gemm_bf16;
    table.gemm_fp8 = gemm_fp8;
    table.gemm_int8 = gemm_int8;
    table.gemm_int4 = gemm_int4;
    table.attention = attention;
    table.full_attention = full_attention;
    table.gdn_chunk = gdn_chunk;
    table.gdn_fold = gdn_fold;
    return table;
  }();
  return &kTable;
}

}  // namespace sluice::kernels::amx

#else

namespace sluice::kernels::amx {

const KernelTable* table() {
  return nullptr;
}

}  // namespace sluice::kernels::amx

#endif
