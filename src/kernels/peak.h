// Loops that keep one part of the machine busy and do nothing else: the ceilings that kernels are
// measured against. Threads and clock are the caller's (ops/ceiling.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/kernel_table.h"
#include "platform/cpu_features.h"

namespace sluice::kernels {

struct PeakLoop {
  const char* name;             // "amx bf16", "avx512 fma", ...
  double operations_per_round;  // of one thread; a multiply-add counts as two
  void (*run)(std::int64_t rounds) noexcept;
};

struct PeakLoops {
  PeakLoop product;                      // the instruction that products of the table are made of
  std::optional<PeakLoop> product_int8;  // the same for int8, where the table's unit has it
  // Reads [data, data + bytes) once, as four streams; bytes is a multiple of 256. The value keeps
  // the compiler from leaving it out.
  float (*read)(const std::byte* data, std::int64_t bytes) noexcept;
};

// For the table a machine computes with: what it could reach, not what others could.
PeakLoops peak_loops(const KernelTable& table, const CpuFeatures& cpu);

}  // namespace sluice::kernels
