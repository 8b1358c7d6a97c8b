#include "schedules/collective_kind.h"

#include <array>
#include <cstddef>

namespace plumb { inline namespace schedules {

std::string_view collective_name(CollectiveKind kind) {
  constexpr std::array<std::string_view, kCollectiveKindCount + 2> kNames = {
      "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "scatter",
      "gather",     "reduce",     "shift",          "send",       "receive"};
  return kNames[static_cast<std::size_t>(kind)];
}

}}  // namespace plumb::schedules
