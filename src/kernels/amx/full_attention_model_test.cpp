// Full attention on a software model of the tile unit: tested on machines without AMX too.
#include <gtest/gtest.h>

#include "kernels/amx/test_tile_unit.h"
#include "kernels/ref/table.h"
#include "kernels/test_full_attention.h"
#include "kernels/test_support.h"
#include "platform/float_mode.h"

namespace sluice::kernels::amx_model {

constexpr std::int64_t kTileRows = 16;  // as in product.inl
#include "kernels/amx/full_attention.inl"

namespace {

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

}  // namespace
}  // namespace sluice::kernels::amx_model
