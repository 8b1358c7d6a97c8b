#pragma once
// The reasons for which a layout cannot exist, except memory.

#include <optional>
#include <string>

#include "planner/spec/cluster_spec.h"
#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/training_spec.h"

namespace plumb { inline namespace planner {

/// Layouts by the keys that decide, which lost; and why.
struct Rejection {
  LayoutRequest layout;
  std::string reason;
};

/// Returns one sentence with the remedy, or nothing if the layout can exist for that model, training and number of
/// devices: the degrees multiply to the devices, tensor parallelism divides heads, kv heads and feed-forward (the
/// vocabulary is padded) and under sequence parallelism the sequence, there is a layer for each stage, the batch
/// divides, a split fits, the schedule has at most 2^24 forwards and a micro-batch at most 2^28 tokens.
std::optional<std::string> layout_conflict(const ModelSpec& model, const TrainingSpec& training,
                                           const ClusterSpec& cluster, const Layout& layout);

/// Returns the same for that many devices of one site.
std::optional<std::string> layout_conflict(const ModelSpec& model, const TrainingSpec& training, int devices,
                                           const Layout& layout);

}}  // namespace plumb::planner
