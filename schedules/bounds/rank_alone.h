#pragma once
// The bound by one rank alone: the shortest order of its own actions where every other rank runs any number at once.

#include <cstdint>

#include "schedules/bounds/lower_bound.h"
#include "schedules/bounds/order_question.h"

namespace plumb { inline namespace schedules {

/// Returns the bound by the work and the memory of a rank alone, but no more than `most_time`: a bound that reaches it
/// is not told from larger ones. Returns nothing (time 0) where it takes more comparisons of partial orders than `most_comparisons`.
///
/// Derivation. Take any order of all ranks within the memory. On the rank itself it runs one action at a time, within
/// the rank's memory, and
///   a forward ends at least the way between (forwards and hops of the stages there) before that of the rank's next
///   stage of the lane starts, and before the input gradient of the same stage where no such stage is left: the way to
///   the lane's end and back;
///   an input gradient ends at least the way between before that of the rank's stage before;
///   the objective ends no earlier than the tail (lane_times.h) behind any input gradient.
/// The bound keeps these constraints alone, and whatever else an order must keep to can only make it longer. The k-th
/// actions of a kind on a stage are taken for those of micro-batch k: sorting the starts of each stage keeps all of the
/// above, since the micro-batches of a lane cost the same. Partial orders with the same numbers of actions are compared:
/// one whose rank, messages and objective are all as early replaces the other. An action that could start behind the
/// end of another one is not run before that, unless that is a forward whose memory another stage may need first.
/// The span of a question with several lanes has no start that all of the lane's ways are known from: only the rank's
/// own last end counts there.
LowerBound rank_alone_bound(const OrderQuestion& question, int rank, std::int64_t most_time,
                            std::int64_t most_comparisons);

/// Returns the reason of that bound.
std::string rank_alone_reason(int rank);

}}  // namespace plumb::schedules
