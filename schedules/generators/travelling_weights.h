#pragma once
// The placement of schedules whose weights travel: every rank is a lane with all parts of the model, one for each rank.
// Micro-batch n runs on rank n mod p.

#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Returns the stage that is a part of the model on a rank.
inline int travelling_stage(int ranks, int rank, int part) {
  return rank * ranks + part;
}

inline std::vector<StagePlace> travelling_placement(int ranks) {
  std::vector<StagePlace> places;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int part = 0; part < ranks; ++part) places.push_back({.rank = rank, .model_part = part, .lane = rank});
  }
  return places;
}

/// Returns a message of a part's weights, or of their gradient, on `rank`, to or from `other`.
inline Action weight_message(Op op, int ranks, int part, int rank, int other) {
  return {.op = op, .stage = travelling_stage(ranks, rank, part), .peer = travelling_stage(ranks, other, part)};
}

}}  // namespace plumb::schedules
