#pragma once
// What people call the models and clusters of the presets.
//
//   presets_spelled({"a100", "a100-40gb"}, "A100-SXM4-80GB") == {"a100"}

#include <string>
#include <string_view>
#include <vector>

namespace plumb { inline namespace tools {

/// Which of `names` may be meant: the one that it is, in any case; or else those of its letters and digits (what a
/// repository puts around a model's name, "Meta-", "-Instruct", does not count), of which "gpt313b" has two; or the one
/// of a device's or machine's full name. None if nothing is.
std::vector<std::string> presets_spelled(const std::vector<std::string>& names, std::string_view text);

/// The name that comes nearest: the longest that `text` begins with, or else by edit distance; empty if none is near.
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
