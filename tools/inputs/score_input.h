#pragma once
// What `plumb score` is given: files of published rows, and the presets that they are mapped with.

#include <string>
#include <vector>

#include "planner/score/score.h"

namespace plumb { inline namespace tools {

struct ScoreInput {
  ScoreLibrary library;
  std::vector<PublishedRows> files;
};

/// Reads the files. One that is an object without "rows" gives the sizes of models by name (`dims_key`). `set` holds
/// cluster.PATH=VALUE or stack.PATH=VALUE, `tables` files of measured products, `mappings` files that say how sources
/// are read and come before those that the tool carries. Throws InputError if a file cannot be read, SpecError if it is
/// no JSON, has rows that are none, is no mapping, or `set` names neither a cluster's nor a stack's figure.
ScoreInput score_input(const std::vector<std::string>& files, const std::vector<std::string>& set,
                       const std::vector<std::string>& tables, const std::vector<std::string>& mappings);

}}  // namespace plumb::tools
