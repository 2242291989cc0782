// The floating-point mode is part of the arithmetic contract: denormals are flushed to zero on
// input and output (x86: MXCSR DAZ and FTZ), rounding is to nearest even.
#pragma once

namespace sluice {

// Sets the mode for the calling thread for the life of the object and restores it after.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned long saved_;
};

// Whether the calling thread flushes denormals now.
bool flushes_denormals();

}  // namespace sluice
