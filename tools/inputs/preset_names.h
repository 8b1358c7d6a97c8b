#pragma once
// Presets are found by the names that people use for models and clusters.
//
//   presets_spelled({"a100", "a100-40gb"}, "A100-SXM4-80GB") == {"a100"}

#include <string>
#include <string_view>
#include <vector>

namespace plumb { inline namespace tools {

/// Returns the members of `names` that `text` may mean. The first of these rules that finds any decides: the name that
/// equals it in any case; the names with the same letters and digits ("gpt313b" has two); the cluster whose device or
/// machine has that full name. If the whole text finds none, the text without the words that repositories put around a
/// model's name ("Meta-", "-Instruct") is tried. The result is empty if nothing is found.
std::vector<std::string> presets_spelled(const std::vector<std::string>& names, std::string_view text);

/// Returns the nearest name: the longest one that `text` begins with, or else the one at the smallest edit distance;
/// empty if none is near.
std::string nearest_preset(const std::vector<std::string>& names, std::string_view text);

/// Returns the cluster preset of a GPU by the name that its driver gives it: "NVIDIA H100 80GB HBM3" is h100, and "NVIDIA
/// GeForce RTX 4090" is rtx4090. A preset is found by the first word of its own name; the result is empty if none is.
std::string preset_of_gpu(const std::vector<std::string>& clusters, std::string_view gpu);

/// A device without a preset of its own, described by the preset of a similar one and the difference between them.
struct LikeCluster {
  std::string_view text;  ///< the device's letters and digits
  std::string_view preset;
  std::string_view difference;
};

/// Returns the entry of a device that no preset describes, or null if the device is not known.
const LikeCluster* cluster_not_held(std::string_view text);

}}  // namespace plumb::tools
