#pragma once
// What people call the models and clusters of the presets.
//
//   preset_spelled({"a100", "a100-40gb"}, "A100-SXM4-80GB") == "a100"

#include <string>
#include <string_view>
#include <vector>

namespace plumb { inline namespace tools {

/// Which of `names` is meant: by its letters and digits in any case (what a repository puts around a model's name,
/// "Meta-", "-Instruct", does not count), or by a device's or machine's full name. Empty if none is.
std::string preset_spelled(const std::vector<std::string>& names, std::string_view text);

/// The name that comes nearest: the longest that `text` begins with, or else by edit distance.
std::string nearest_preset(const std::vector<std::string>& names, std::string_view text);

/// A device that no preset describes, as one that a preset does, with what differs.
struct LikeCluster {
  std::string_view text;  ///< the device, letters and digits
  std::string_view preset;
  std::string_view difference;
};

/// Null if nothing is known of it.
const LikeCluster* cluster_not_held(std::string_view text);

}}  // namespace plumb::tools
