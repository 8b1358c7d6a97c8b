#include "traces/draw/timeline_title.h"

#include <algorithm>

#include <fmt/format.h>

namespace plumb { inline namespace traces {

std::string timeline_title(const Schedule& schedule) {
  const int ranks = static_cast<int>(schedule.ranks.size());
  int parts = 1;
  for (const StagePlace& place : schedule.stages) parts = std::max(parts, place.model_part + 1);
  const int copies = static_cast<int>(schedule.stages.size()) / parts;
  const int chunks = ranks == 0 ? 0 : parts / ranks;
  return fmt::format("{} p={}{} m={}{}", schedule.name, ranks, chunks > 1 ? fmt::format(" v={}", chunks) : "",
                     schedule.microbatches, copies > 1 ? fmt::format(", {} copies", copies) : "");
}

}}  // namespace plumb::traces
