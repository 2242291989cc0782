// Opens the AMX region (it includes AVX-512): the compiler may use these instructions until end.h.
#if defined(__clang__)
#pragma clang attribute push(                                                                   \
    __attribute__((target(                                                                      \
        "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16,amx-int8"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target( \
    "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16,amx-int8")
#endif
namespace sluice::kernels::amx {
