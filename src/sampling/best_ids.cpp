#include "sampling/best_ids.h"

#include <algorithm>

#include "base/check.h"

namespace sluice {

void best_ids(std::span<const float> scores, std::size_t k, std::span<TokenId> ids) {
  SLUICE_CHECK(k >= 1);
  SLUICE_CHECK(k <= scores.size());
  SLUICE_CHECK(ids.size() >= scores.size());
  const auto before = [scores](TokenId a, TokenId b) {
    const float score_a = scores[static_cast<std::size_t>(a)];
    const float score_b = scores[static_cast<std::size_t>(b)];
    return score_a != score_b ? score_a > score_b : a < b;
  };
  // Survivors gather in ids; whenever the room is full it shrinks to the k best, and the worst of
  // those becomes the bar. A later id that ties with the bar has k better ones before it.
  const std::size_t room = std::min(scores.size(), 2 * k + 1024);
  std::size_t count = 0;
  bool has_bar = false;
  float bar = 0.0F;
  for (std::size_t id = 0; id < scores.size(); ++id) {
    if (has_bar && !(scores[id] > bar)) {
      continue;
    }
    if (count == room) {
      std::nth_element(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(k - 1),
                       ids.begin() + static_cast<std::ptrdiff_t>(count), before);
      count = k;
      bar = scores[static_cast<std::size_t>(ids[k - 1])];
      has_bar = true;
      if (!(scores[id] > bar)) {
        continue;
      }
    }
    ids[count++] = static_cast<TokenId>(id);
  }
  const auto end_of = [ids](std::size_t n) { return ids.begin() + static_cast<std::ptrdiff_t>(n); };
  if (count > k) {
    std::nth_element(ids.begin(), end_of(k - 1), end_of(count), before);
  }
  std::sort(ids.begin(), end_of(k), before);
}

}  // namespace sluice
