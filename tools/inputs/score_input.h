#pragma once
// The inputs of `plumb score` are files of published rows, and the presets that the rows are mapped to.

#include <string>
#include <vector>

#include "planner/score/score.h"

namespace plumb { inline namespace tools {

struct ScoreInput {
  ScoreLibrary library;
  std::vector<PublishedRows> files;
};

/// Reads the files. A file that is an object without "rows" gives the sizes of models by name (`dims_key`). `set` has
/// entries cluster.PATH=VALUE or stack.PATH=VALUE. `tables` names files of measured products. `mappings` names files
/// that say how sources are read; they come before the built-in ones. Throws InputError if a file cannot be read,
/// SpecError if a file is no JSON or has invalid rows or an invalid mapping, and UsageError if an entry of `set` names
/// no figure of a cluster or a stack.
ScoreInput score_input(const std::vector<std::string>& files, const std::vector<std::string>& set,
                       const std::vector<std::string>& tables, const std::vector<std::string>& mappings);

}}  // namespace plumb::tools
