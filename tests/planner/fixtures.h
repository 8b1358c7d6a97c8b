#pragma once
// Fixtures that the planner's tests share: presets by name, and a small machine with round numbers.

#include <string>
#include <vector>

#include "planner/search/search.h"
#include "planner/spec/cluster_spec.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/training_spec.h"

namespace plumb::test {

/// Returns the text of a file of the source tree, e.g. "tools/specs/models/gpt2.json".
std::string source_text(const std::string& path);

/// Returns the names of the presets of tools/specs/FOLDER, in order.
std::vector<std::string> preset_names(const std::string& folder);

ModelSpec preset_model(const std::string& name);
ClusterSpec preset_cluster(const std::string& name_and_devices);

/// Returns a cluster with 100 TFLOP/s at bf16 and 10 at fp32, 1 TB/s, 16 GiB, all efficiencies 1, no fixed time and no
/// output tiles. It has 4 devices a node at 100 GB/s and 1 us, and nodes at 10 GB/s a device and 10 us.
ClusterSpec round_cluster(int devices);

/// Returns a model in GPT-2's form with biases: 8 layers of hidden 1024, 8 heads, ffn 4096, vocabulary 8192.
ModelSpec small_gpt();

/// A step of 16 sequences of 512 tokens.
inline const TrainingSpec kSmallTraining{.global_batch = 16, .sequence = 512};

/// search_layouts() at prices of its own.
SearchResult found_layouts(const ModelSpec& model, const ClusterSpec& cluster, const TrainingSpec& training,
                           const LayoutRequest& request, const SearchOptions& options = {});

}  // namespace plumb::test
