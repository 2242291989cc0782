#include "platform/float_mode.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace sluice {

#if defined(__x86_64__)

namespace {
constexpr unsigned kFlushToZero = 0x8000;
constexpr unsigned kDenormalsAreZero = 0x0040;
}  // namespace

FlushDenormals::FlushDenormals() : saved_(_mm_getcsr()) {
  _mm_setcsr(static_cast<unsigned>(saved_) | kFlushToZero | kDenormalsAreZero);
}

FlushDenormals::~FlushDenormals() {
  _mm_setcsr(static_cast<unsigned>(saved_));
}

bool flushes_denormals() {
  return (_mm_getcsr() & (kFlushToZero | kDenormalsAreZero)) == (kFlushToZero | kDenormalsAreZero);
}

#elif defined(__aarch64__)

namespace {

constexpr unsigned long kFlushToZero = 1UL << 24;

unsigned long read_fpcr() {
  unsigned long value = 0;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}

void write_fpcr(unsigned long value) {
  asm volatile("msr fpcr, %0" : : "r"(value));
}

}  // namespace

FlushDenormals::FlushDenormals() : saved_(read_fpcr()) {
  write_fpcr(saved_ | kFlushToZero);
}

FlushDenormals::~FlushDenormals() {
  write_fpcr(saved_);
}

bool flushes_denormals() {
  return (read_fpcr() & kFlushToZero) != 0;
}

#else
#error "no way known to flush denormals on this architecture; the numerics contract needs it"
#endif

}  // namespace sluice
