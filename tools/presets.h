#pragma once
// The presets that the tool carries: the JSON files of tools/specs, put into the binary when it is built (specs/embed.py).

#include <string_view>
#include <vector>

namespace plumb {

struct Preset {
  enum class Kind { kModel, kCluster };
  Kind kind;
  std::string_view name;  ///< the file's name without its ending
  std::string_view text;  ///< JSON, Plumb's own form
};

/// Ordered by kind and name.
const std::vector<Preset>& presets();

}  // namespace plumb
