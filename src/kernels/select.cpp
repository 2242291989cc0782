#include "kernels/select.h"

#include <string>

#include "kernels/amx/table.h"
#include "kernels/avx2/table.h"
#include "kernels/avx512/table.h"
#include "kernels/ref/table.h"

namespace sluice::kernels {
namespace {

struct Candidate {
  std::string_view name;
  const KernelTable* table;  // null: not on this architecture
  bool cpu_has_it;
};

std::vector<Candidate> candidates(const CpuFeatures& cpu) {
  return {{"ref", &ref::table(), true},
          {"avx2", avx2::table(), cpu.avx2},
          {"avx512", cpu.avx512_vnni ? avx512::vnni_table() : avx512::table(), cpu.avx512},
          {"amx", amx::table(), cpu.amx_bf16 && cpu.amx_int8 && cpu.avx512_vnni}};
}

}  // namespace

std::vector<const KernelTable*> supported_tables(const CpuFeatures& cpu) {
  std::vector<const KernelTable*> tables;
  for (const Candidate& candidate : candidates(cpu)) {
    if (candidate.table != nullptr && candidate.cpu_has_it) {
      tables.push_back(candidate.table);
    }
  }
  return tables;
}

Result<const KernelTable*> select_kernels(const CpuFeatures& cpu, std::string_view forced) {
  if (forced.empty()) {
    return supported_tables(cpu).back();
  }
  for (const Candidate& candidate : candidates(cpu)) {
    if (candidate.name != forced) {
      continue;
    }
    if (candidate.table == nullptr || !candidate.cpu_has_it) {
      return fail(ErrorCode::unsupported, "instruction set \"" + std::string(forced) +
                                              "\" is not available on this CPU (" +
                                              cpu.vendor_model + ")");
    }
    return candidate.table;
  }
  return fail(ErrorCode::invalid_argument, "instruction set \"" + std::string(forced) +
                                               "\" is unknown; known: ref, avx2, avx512, amx");
}

}  // namespace sluice::kernels
