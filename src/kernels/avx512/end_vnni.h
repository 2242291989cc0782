// Closes the region of begin_vnni.h.
}  // namespace sluice::kernels::avx512::vnni
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
