// Attention and the delta rule on a software model of the tile unit: tested on machines without AMX
// too.
#include <gtest/gtest.h>

#include "kernels/amx/test_tile_unit.h"
#include "kernels/ref/table.h"
#include "kernels/test_full_attention.h"
#include "kernels/test_support.h"
#include "platform/float_mode.h"

namespace sluice::kernels::amx_model {

// clang-format off: each part uses the ones above it.
#include "kernels/amx/product.inl"
#include "kernels/amx/panel.inl"
#include "kernels/amx/attention.inl"
#include "kernels/simd/gdn.inl"
// clang-format on

namespace {

KernelTable model_table() {
  KernelTable table = ref::table();
  table.attention = attention;
  table.gdn_chunk = gdn_chunk;
  table.gdn_fold = gdn_fold;
  return table;
}

TEST(AmxModelTest, AttentionEqualsReference) {
  const FlushDenormals float_mode;
  for (const std::int64_t head_dim : {64, 48}) {
    Random random(static_cast<std::uint64_t>(head_dim));
    const AttentionProblem problem(head_dim, 1200, random);
    for (const std::int64_t last : {1, 65, 130, 1025, 1100}) {
      for (const std::int64_t rows : {1, 16, 17, 40, 128}) {
        const AttentionProblem::Query query = problem.query(last, rows, random);
        EXPECT_EQ(differences(problem.run(ref::table(), query), problem.run(model_table(), query)),
                  0)
            << "head_dim " << head_dim << ", " << last << " keys, " << rows << " rows";
      }
    }
  }
}

TEST(AmxModelTest, FullAttentionEqualsReference) {
  const FlushDenormals float_mode;
  struct Case {
    std::int64_t head_dim;
    std::int64_t keys;
    std::int64_t rows;
  };
  for (const Case& c : {Case{4, 4, 4}, Case{16, 65, 33}, Case{72, 100, 20}, Case{72, 1090, 5},
                        Case{128, 64, 32}, Case{80, 130, 1}, Case{16, 64, 260}}) {
    const FullAttentionProblem problem(c.head_dim, c.keys, c.rows, 3.0);
    EXPECT_EQ(differences(problem.run(ref::table()), problem.run(full_attention, 0, c.rows)), 0)
        << "head_dim " << c.head_dim << ", " << c.keys << " keys, " << c.rows << " rows";
  }
}

TEST(AmxModelTest, DeltaRuleEqualsReference) {
  const FlushDenormals float_mode;
  struct Case {
    std::int64_t key_dim;
    std::int64_t value_dim;
  };
  for (const Case& c : {Case{128, 128}, Case{48, 80}, Case{16, 48}}) {
    const DeltaProblem problem(c.key_dim, c.value_dim, 70, DeltaInputs::realistic);
    const DeltaProblem::Outcome expected = problem.run(ref::table(), {70});
    for (const std::int64_t rows : {1, 5, 16, 17, 32}) {
      const DeltaProblem::Outcome got = problem.run(model_table(), {rows});
      EXPECT_EQ(differences(expected.out, got.out), 0) << c.key_dim << ", " << rows << " rows";
      EXPECT_EQ(differences(expected.state, got.state), 0) << c.key_dim << ", " << rows << " rows";
    }
  }
}

}  // namespace
}  // namespace sluice::kernels::amx_model
