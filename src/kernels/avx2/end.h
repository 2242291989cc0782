// Closes the region of begin.h.
}  // namespace sluice::kernels::avx2
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
