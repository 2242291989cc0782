// What one step of the engine computes: made by Scheduler::plan(), carried out by engine/.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice {

using SequenceId = std::int64_t;  // ascending in the order of submission, never reused

// Consecutive tokens of one sequence: positions [position, position + token_count).
struct PlannedRows {
  SequenceId sequence = 0;
  std::int64_t position = 0;
  std::int64_t token_count = 0;  // >= 1
  // Of the last so many rows: the next token follows from the last one, the scores of a prompt from
  // all of them.
  std::int64_t logit_row_count = 0;
};

struct StepPlan {
  std::vector<PlannedRows> rows;  // at most one entry per sequence
  std::int64_t token_count = 0;   // over all rows
  std::int64_t logit_row_count = 0;
};

}  // namespace sluice
