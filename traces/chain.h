#pragma once
// Says what came before what in a timeline, predicted or measured: the spans that a span had to wait for, and the chain
// of them that leads to the end.
//
// Waiting for a send's channel is not looked at: a transfer's span ends with its delivery, not with its hold on the
// channel.

#include <cstdint>
#include <vector>

#include "schedules/dependencies/action_table.h"
#include "schedules/schedule.h"
#include "traces/timeline.h"

namespace plumb { inline namespace traces {

/// Returns, for each [rank][span], the latest end of the spans that it waits for: its rank's compute before it, its
/// inputs, its collectives. For a span that began inside the span that it waits for, the moment is its own start. It is
/// SimTime::min() for a span that waits for none.
std::vector<std::vector<SimTime>> ready_times(const Timeline& timeline);

struct ChainLink {
  int rank = 0;
  std::int32_t span = 0;  ///< index into the rank's spans

  friend bool operator==(const ChainLink&, const ChainLink&) = default;
};

/// Returns, for each [rank][span], the span that it waited for last: among those that ready_times looks at, the first
/// of those that end last. The rank is -1 for a span that waits for none. `schedule` is schedule_of(timeline), and
/// `table` is its table.
std::vector<std::vector<ChainLink>> last_awaited(const Timeline& timeline, const Schedule& schedule,
                                                 const ActionTable& table);

/// Returns the chain, first to last. Its last span is the first among the spans that end last; ahead of each span comes
/// the one that it waited for last. Messages are the SENDs. Ties go to the rank's own order. The chain is empty without
/// spans. Where no send waits for its channel or its receive, the chain of a predicted timeline is its critical path.
std::vector<ChainLink> latest_chain(const Timeline& timeline);

}}  // namespace plumb::traces
