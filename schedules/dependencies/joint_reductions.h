#pragma once
// The REDUCE_GRADs of copies (stages of one model part on different ranks) form collectives: the k-th REDUCE_GRADs of
// all copies are, bucket by bucket, one sum. It starts when every copy has issued its own and every one of them has
// come to the head of its rank's channel. It ends for all together.

#include <cstdint>
#include <vector>

#include "schedules/dependencies/dependencies.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

struct JointReductions {
  /// [action id] the collective of a REDUCE_GRAD, -1 for other actions. Empty where no stage has copies, because every
  /// REDUCE_GRAD is then a collective of its own.
  std::vector<std::int32_t> collective_of;
  std::vector<std::vector<std::int32_t>> members;  ///< [collective] action ids, ascending
};

/// A copy that lists fewer REDUCE_GRADs than the others is no member of the last collectives: validate reports it.
JointReductions joint_reductions(const Schedule& schedule);

/// The channels of REDUCE_GRAD, one a rank, first in first out, in a schedule whose stages have copies.
class ReductionQueues {
 public:
  /// The arguments must outlive the queues.
  ReductionQueues(const Schedule& schedule, const ActionIds& ids, const JointReductions& joint);

  /// Puts a REDUCE_GRAD behind those that its rank has issued. Returns the collectives that may run now, in order; they
  /// have left the channels of all their members.
  std::vector<std::int32_t> issue(std::int32_t id);

  /// True if no REDUCE_GRAD waits for others.
  bool empty() const;

 private:
  struct Queue {
    std::vector<std::int32_t> issued;  // action ids
    std::size_t head = 0;
  };

  Queue& queue_of(std::int32_t id) { return queues_[place_of(ids_, id).rank]; }
  bool is_at_head(std::int32_t id);
  bool may_run(std::int32_t collective);

  const ActionIds& ids_;
  const JointReductions& joint_;
  std::vector<Queue> queues_;  // [rank]
};

}}  // namespace plumb::schedules
