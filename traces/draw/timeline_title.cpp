#include "traces/draw/timeline_title.h"

#include <algorithm>

#include <fmt/format.h>

namespace plumb { inline namespace traces {

std::string timeline_title(const Schedule& schedule) {
  const int ranks = static_cast<int>(schedule.ranks.size());
  int parts = 1;
  for (const StagePlace& place : schedule.stages) parts = std::max(parts, place.model_part + 1);
  const int lanes = static_cast<int>(schedule.stages.size()) / parts;
  const bool copies = has_copies(schedule);
  const int chunks = ranks == 0 || (lanes > 1 && !copies) ? 0 : parts / ranks;  // lanes of one rank share its chunks
  const std::string_view of_lanes = copies ? "copies" : "lanes";
  return fmt::format("{} p={}{} m={}{}", schedule.name, ranks, chunks > 1 ? fmt::format(" v={}", chunks) : "",
                     schedule.microbatches, lanes > 1 ? fmt::format(", {} {}", lanes, of_lanes) : "");
}

}}  // namespace plumb::traces
