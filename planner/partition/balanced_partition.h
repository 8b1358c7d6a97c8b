#pragma once
// The partition of a model's layers: which consecutive layers each model part holds.
//
// All transformer layers cost the same, the embedding sits on the first part and the head on the last. The balanced
// split hands out the transformer layers one by one to the part with the lowest cost so far; among equal parts, to the
// one whose rank has the lowest cost. For equal items that minimises the slowest part (Graham 1969's list scheduling,
// optimal where all items are equal). Where the parts divide the layers evenly and balancing does not speed up the
// slowest part by at least 1 %, the even split stays.

#include <string>
#include <vector>

#include "kernels/layer.h"
#include "schedules/schedule.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

/// Time of a layer in a steady pipeline: one micro-batch's forward and backward.
struct LayerLoads {
  Seconds embedding{0};
  Seconds transformer{0};
  Seconds head{0};
};

struct Partition {
  std::vector<int> split;          ///< [model part] transformer layers
  std::vector<std::string> notes;  ///< explanations of an uneven split for the user
};

/// Returns the balanced split. `stages` gives each model part's rank. Asserts that every part can get at least one
/// layer.
Partition balanced_partition(int transformer_layers, const LayerLoads& weights, const std::vector<StagePlace>& stages);

/// [model part] the rank of the part's first copy.
std::vector<int> ranks_by_part(const std::vector<StagePlace>& stages);

/// Returns the split as text, each run of equal numbers written once: "8x2,7x3".
std::string runs_text(const std::vector<int>& split);

/// Throws SpecError if the split does not sum up to that many transformer layers.
void require_all_layers(const std::vector<int>& split, int transformer_layers);

/// Returns the layers of each model part: the embedding joins the first part and the head the last (which may hold
/// nothing else). `layers` is model_layers(). Throws SpecError if the split does not sum up to the transformer layers.
std::vector<std::vector<Layer>> layers_by_part(const std::vector<Layer>& layers, const std::vector<int>& split);

}}  // namespace plumb::planner
