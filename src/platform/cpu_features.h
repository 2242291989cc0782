// What this CPU can run, and what the operating system lets us use. Asked once, at start.
#pragma once

#include <string>

namespace sluice {

struct CpuFeatures {
  bool avx2 = false;         // AVX2 and FMA with OS support for ymm state
  bool avx512 = false;       // AVX-512 F, BW, DQ, VL with OS support for zmm state
  bool avx512_vnni = false;  // the same and AVX-512 VNNI
  bool amx_bf16 = false;     // AMX-TILE, AMX-BF16, AVX512-BF16; the OS granted permission
  bool amx_int8 = false;     // the same for AMX-INT8
  std::string vendor_model;  // "Intel(R) Xeon(R) ...", for the start-up line
};

// Asks the OS for AMX tile permission as a side effect (it is per process and costs nothing).
CpuFeatures detect_cpu_features();

}  // namespace sluice
