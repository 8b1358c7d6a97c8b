#include "schedules/search/placements.h"

namespace plumb { inline namespace schedules {

std::vector<std::string> placement_names() {
  return {"any", "chain", "loop", "v", "wave", "bidirectional"};
}

std::vector<NamedPlacement> placements(std::string_view name, int ranks, int chunks) {
  std::vector<NamedPlacement> found;
  const auto add = [&](std::string_view placement, std::vector<StagePlace> stages) {
    if (name == placement || name == "any") found.push_back({std::string(placement), std::move(stages)});
  };
  add("chain", loop_placement(ranks, ranks));
  for (int on_rank = 2; on_rank <= chunks && ranks > 1; ++on_rank) {
    if (chunks % on_rank != 0) continue;
    add("loop", loop_placement(ranks, ranks * on_rank));
    add(on_rank == 2 ? "v" : "wave", snake_placement(ranks, ranks * on_rank));
  }
  if (name == "bidirectional") found.push_back({std::string(name), bidirectional_placement(ranks)});
  return found;
}

}}  // namespace plumb::schedules
