// The AMX kernels. Null where this build's architecture does not have them.
#pragma once

#include "kernels/kernel_table.h"

namespace sluice::kernels::amx {

const KernelTable* table();

}  // namespace sluice::kernels::amx
