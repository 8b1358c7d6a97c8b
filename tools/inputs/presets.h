#pragma once
// The build puts the JSON files of tools/specs, the parts of pages and a text to train on into the binary (specs/embed.py).

#include <string_view>
#include <vector>

namespace plumb { inline namespace tools {

struct Preset {
  enum class Kind { kModel, kCluster, kStack, kMapping, kTarget, kReliability, kErrorBars, kPage, kText };
  Kind kind;
  std::string_view name;  ///< the file's name without its ending; with it for parts of pages
  std::string_view text;  ///< JSON in Plumb's own form; other texts as they are
};

/// Returns all presets, ordered by path, and so by name within a kind.
const std::vector<Preset>& presets();

}}  // namespace plumb::tools
