#pragma once
// Fixtures that the tests of scores share: one small source, its row, and the library that maps it.

#include <nlohmann/json.hpp>

#include "planner/score/score.h"

namespace plumb::test {

/// Returns the row of a GPT of 8 layers in sequences of 512 tokens on 8 devices: tp=2, pp=2, dp=2, micro-batches of 2
/// sequences of 32, ZeRO 1, full recomputation, bf16. It cites "owner/small" and measured a step of one second.
nlohmann::json small_row();

/// Returns the mapping of "owner/small", the cluster preset "round" (tests/planner/fixtures.h) and the stack preset
/// "plain".
ScoreLibrary small_library();

/// Returns rows "a", "b", ... of that source, each with its own micro-batch; the measurement is `factor` times the
/// prediction.
std::vector<nlohmann::json> predicted_rows(const ScoreLibrary& library, const std::vector<std::int64_t>& microbatches,
                                           double factor);

}  // namespace plumb::test
