// Picks the kernel table once, at start.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/kernel_table.h"
#include "platform/cpu_features.h"

namespace sluice::kernels {

// The best table this CPU runs, or the one named `forced` ("ref", "avx2", "avx512", "amx") if it is
// not empty. Errors: invalid_argument (unknown name), unsupported (this CPU or build lacks it).
Result<const KernelTable*> select_kernels(const CpuFeatures& cpu, std::string_view forced);

// Every table this CPU runs, slowest first. For tests and benchmarks.
std::vector<const KernelTable*> supported_tables(const CpuFeatures& cpu);

}  // namespace sluice::kernels
