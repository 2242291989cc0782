// The AVX512 kernels. Null where this build's architecture does not have them.
#pragma once

#include "kernels/kernel_table.h"

namespace sluice::kernels::avx512 {

const KernelTable* table();
// With VNNI.
const KernelTable* vnni_table();

}  // namespace sluice::kernels::avx512
