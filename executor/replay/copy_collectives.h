#pragma once
// Collectives among the copies of a stage, as one rank sees them: gradients are reduced, weights are gathered from
// shards, tied tables are summed, and all ranks agree on the scale of a step. The collectives run beside the rank's
// compute. A span of the timeline is closed when its collectives are known to have ended.

#include <functional>
#include <optional>
#include <vector>

#include "executor/replay/replay.h"
#include "executor/transport/communicator.h"

namespace plumb { inline namespace executor {

class CopyCollectives {
 public:
  /// Receives the position of a span in the timeline and the times of the span's collectives.
  using CloseSpan = std::function<void(std::size_t span, const TransferTimes& times)>;

  /// `plan` and `seat` must outlive the object.
  CopyCollectives(const ReplayPlan& plan, const ReplaySeat& seat, CloseSpan close);

  /// Start the collectives of a bucket's REDUCE_GRAD, and of a stage's UNSHARD. Nothing happens to a stage with one
  /// copy.
  void reduce(int stage, int bucket, std::size_t span);
  void gather(int stage, std::size_t span);

  /// RESHARD: waits for the gather and drops the gathered weights.
  void drop(int stage);

  /// Waits until the stage's weights are whole.
  void require_weights(int stage);

  /// Waits until the stage's gradients are reduced and its tied tables are summed, and returns the scale of its
  /// optimizer step.
  StepScale before_step(int stage);

  /// Waits for all collectives under way.
  void finish();

 private:
  struct Started {
    Communicator* group = nullptr;
    CollectiveTicket ticket;
  };
  struct Open {
    std::size_t span = 0;
    std::vector<Started> collectives;
  };

  Communicator* copies_of(int stage) const { return seat_.groups->copies[static_cast<std::size_t>(stage)].get(); }
  Communicator* expert_copies_of(int stage) const {
    return seat_.groups->expert_copies[static_cast<std::size_t>(stage)].get();
  }
  Communicator* same_shares_of(int stage) const {
    return seat_.groups->same_shares[static_cast<std::size_t>(stage)].get();
  }
  Stage& stage(int number) const { return *seat_.stages[static_cast<std::size_t>(number)]; }
  static void start(Open& open, Communicator* group, const std::vector<Collective>& collectives);
  void wait(const Open& open);
  void finish_reductions(int stage);
  void complete_gradients(int stage);
  void finish_gather(int stage);
  void sum_tied_tables(int stage);
  void sum_tied(std::size_t pair);
  void sum_tied_here(const TiedStages& tied);
  void sum_tied_between_meshes(std::size_t pair);
  void agree();

  const ReplayPlan& plan_;
  const ReplaySeat& seat_;
  const CloseSpan close_;
  std::vector<std::vector<Open>> reductions_;  // [stage]
  std::vector<std::optional<Open>> gathers_;   // [stage]
  std::vector<bool> shares_are_summed_;        // [stage] over the copies with the same share
  bool tied_are_summed_ = false;
  std::optional<StepScale> agreed_;
};

}}  // namespace plumb::executor
