#pragma once
// The placements that a search may choose from, for a model in equal numbers of chunks a rank.

#include <string>
#include <string_view>
#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

struct NamedPlacement {
  std::string name;                ///< "chain", "loop", "v", "wave" or "bidirectional"
  std::vector<StagePlace> stages;  ///< a lane's stages are joined from as many neighbouring chunks each
};

/// Returns the names that placements() takes.
std::vector<std::string> placement_names();

/// Returns the placements of p ranks with `chunks` chunks of the model each that `name` means: "chain" joins
/// a rank's chunks into one stage; "loop" goes round the ranks, "v" forth and back, and "wave" forth and back
/// several times, each with any number of stages a rank that divides the chunks; "bidirectional" is two
/// chains in opposite directions over copies of the model; "any" means all but the last, which holds all
/// weights twice. None if there is no such one.
std::vector<NamedPlacement> placements(std::string_view name, int ranks, int chunks);

}}  // namespace plumb::schedules
