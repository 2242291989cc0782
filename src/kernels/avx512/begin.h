// Opens the AVX-512 region: the compiler may use these instructions until end.h. All #includes come
// before it; inside are intrinsics, our own static helpers and pointers only.
#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")
#endif
namespace sluice::kernels::avx512 {
