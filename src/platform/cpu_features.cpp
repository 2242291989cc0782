#include "platform/cpu_features.h"

#include <array>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace sluice {

#if defined(__x86_64__)
namespace {

// arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA): Linux 5.16 and newer.
constexpr long kArchReqXcompPerm = 0x1023;
constexpr long kXfeatureXtiledata = 18;

bool request_tile_permission() {
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
}

std::string brand_string() {
  std::array<unsigned, 12> words{};
  for (unsigned i = 0; i < 3; ++i) {
    if (__get_cpuid(0x80000002U + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                    &words[4 * i + 3]) == 0) {
      return "unknown x86-64";
    }
  }
  std::array<char, 49> text{};
  std::memcpy(text.data(), words.data(), 48);
  return text.data();
}

}  // namespace

CpuFeatures detect_cpu_features() {
  __builtin_cpu_init();
  CpuFeatures features;
  features.vendor_model = brand_string();
  features.avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  features.avx512 = features.avx2 && __builtin_cpu_supports("avx512f") != 0 &&
                    __builtin_cpu_supports("avx512bw") != 0 &&
                    __builtin_cpu_supports("avx512dq") != 0 &&
                    __builtin_cpu_supports("avx512vl") != 0;
  features.avx512_vnni = features.avx512 && __builtin_cpu_supports("avx512vnni") != 0;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (features.avx512 && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    const bool amx_tile = ((edx >> 24) & 1U) != 0;
    const bool amx_bf16 = ((edx >> 22) & 1U) != 0;
    const bool amx_int8 = ((edx >> 25) & 1U) != 0;
    const bool permitted = amx_tile && (amx_bf16 || amx_int8) && request_tile_permission();
    // Every CPU with the one has the other; a hypervisor may hide it.
    features.amx_bf16 = permitted && amx_bf16 && __builtin_cpu_supports("avx512bf16") != 0;
    features.amx_int8 = permitted && amx_int8;
  }
  return features;
}

#else

CpuFeatures detect_cpu_features() {
  return CpuFeatures{.vendor_model = "not x86-64"};
}

#endif

}  // namespace sluice
