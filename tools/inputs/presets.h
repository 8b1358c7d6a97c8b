#pragma once
// What the tool carries: the JSON files of tools/specs and a text to train on, put into the binary when it is built
// (specs/embed.py).

#include <string_view>
#include <vector>

namespace plumb { inline namespace tools {

struct Preset {
  enum class Kind { kModel, kCluster, kStack, kMapping, kText };
  Kind kind;
  std::string_view name;  ///< the file's name without its ending
  std::string_view text;  ///< JSON in Plumb's own form; a text as it is
};

/// Ordered by path: within a kind by name.
const std::vector<Preset>& presets();

}}  // namespace plumb::tools
