#pragma once
// Layers to stages: which consecutive layers each model part holds.
//
// All transformer layers cost the same, the embedding sits on the first part and the head on the last. The balanced
// split hands the transformer layers out one by one to the part that is cheapest so far, of equals to the one whose
// rank is; for equal items that minimises the slowest part (Graham 1969's list scheduling, optimal where all items are
// equal). Where the parts divide the layers evenly and balancing does not speed up the slowest part by at least 1 %,
// the even split stays.

#include <string>
#include <vector>

#include "kernels/layer/layer.h"
#include "schedules/schedule.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

/// What a layer costs in a steady pipeline: one micro-batch forth and back.
struct LayerLoads {
  Seconds embedding{0};
  Seconds transformer{0};
  Seconds head{0};
};

struct Partition {
  std::vector<int> split;          ///< [model part] transformer layers
  std::vector<std::string> notes;  ///< what a user should know of an uneven split
};

/// `stages` gives each model part's rank. Every part gets at least one layer: asserts that there are enough.
Partition balanced_partition(int transformer_layers, const LayerLoads& weights, const std::vector<StagePlace>& stages);

/// Throws SpecError if the split does not sum up to that many transformer layers.
void require_all_layers(const std::vector<int>& split, int transformer_layers);

/// The layers of each model part: the embedding before the first, the head behind the last (which may hold nothing
/// else). `layers` is model_layers();
/// throws SpecError if the split does not sum up to its transformer layers.
std::vector<std::vector<Layer>> layers_by_part(const std::vector<Layer>& layers, const std::vector<int>& split);

}}  // namespace plumb::planner
