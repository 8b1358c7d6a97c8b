#pragma once
// The inputs of `plumb score` are files of published rows, and the presets that the rows are mapped to.

#include <string>
#include <vector>

#include "planner/score/score.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

struct ScoreInput {
  ScoreLibrary library;
  std::vector<PublishedRows> files;
};

/// The rules that fill what rows do not print.
enum class RowReading {
  kOfSource,  ///< the mapping of the row's source, or else the general one
  kGeneral,   ///< the general mapping alone: a framework by its name, and nothing that is known of the source
  kAsTyped,   ///< none: what the row prints is what a user types, and `plumb plan` searches the rest
};

RowReading reading_of(const ScoreArguments& arguments);

/// Reads the files. A file that is an object without "rows" gives the sizes of models by name (`dims_key`). `set` has
/// entries cluster.PATH=VALUE or stack.PATH=VALUE. `tables` names files of measured products. `mappings` names files
/// that say how sources are read; they come before the built-in ones. Throws InputError if a file cannot be read,
/// SpecError if a file is no JSON or has invalid rows or an invalid mapping, and UsageError if an entry of `set` names
/// no figure of a cluster or a stack.
ScoreInput score_input(const ScoreArguments& arguments, RowReading reading);

}}  // namespace plumb::tools
