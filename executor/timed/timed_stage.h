#pragma once
// The stage of the timed backend, which waits instead of computing. Its operations last as long as a cost table says,
// and its messages have the table's bytes; nothing else of a prediction is in it. It keeps no activations.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "executor/stages/stage.h"
#include "executor/transport/emulated/sleeper.h"
#include "schedules/action.h"
#include "schedules/cost_table.h"

namespace plumb { inline namespace executor {

/// Bytes of the messages of a stage (by slice), 0 where there is no neighbour, and of its weight gradients.
struct TimedStageBytes {
  std::int64_t input = 0;             ///< message to F
  std::int64_t output = 0;            ///< message from F
  std::int64_t input_gradient = 0;    ///< message from B or I
  std::int64_t output_gradient = 0;   ///< message to B or I
  std::vector<std::int64_t> buckets;  ///< [part of REDUCE_GRAD] bytes that it sums
};

class TimedStage : public Stage {
 public:
  /// Operations of stage `stage` of the table last their duration_of divided by `speed`, the rank's share of normal
  /// speed. `costs`, `sleeper` and `pool` must outlive the stage. Throws SpecError if the speed is not positive.
  TimedStage(int stage, const TimedStageBytes& bytes, double speed, const CostTable& costs, const Sleeper& sleeper,
             TensorPool& pool);

  /// While it is set, operations take no time: the pair that they belong to has a duration of its own.
  void set_in_pair(bool in_pair) { in_pair_ = in_pair; }

  void begin(std::int64_t) override {}
  Tensor forward(MicrobatchSlice of, Tensor input) override;
  void recompute(MicrobatchSlice of) override { wait(Op::kRecompute, of); }
  Tensor backward(MicrobatchSlice of, Tensor output_gradient) override;
  Tensor input_grad(MicrobatchSlice of, Tensor output_gradient) override;
  void weight_grad(MicrobatchSlice of) override { wait_with_buckets(Op::kWeightGrad, of, sleeper_.now()); }
  std::vector<Tensor> take_activations(MicrobatchSlice of) override;
  void put_activations(MicrobatchSlice of, std::vector<Tensor> activations) override;
  void watch_buckets(BucketHook complete) override { complete_ = std::move(complete); }
  GradientMeasure gradient_measure() const override { return {}; }
  void optimizer_step(const StepScale&) override { wait(Op::kOptimizerStep, {kNoMicrobatch}); }
  std::vector<Collective> start_reduction(int bucket) override;
  void finish_reduction() override {}
  std::vector<Collective> start_gather() override { return {}; }
  void drop_gathered() override {}
  std::vector<Collective> start_tied(ModelEnd) override { return {}; }
  std::span<float> tied_gradients(ModelEnd) override { return {}; }
  void finish_tied(ModelEnd) override {}
  std::int64_t input_elements(int slice) const override;
  std::int64_t output_elements(int slice) const override;

 private:
  /// Returns when the operation, begun now, is over. Throws SpecError if its cost is negative or not finite.
  void wait(Op op, MicrobatchSlice of) const;

  /// Returns when an operation that began at `start` is over. Calls the bucket hook for each bucket when the table's
  /// bucket_offsets say that it is complete.
  void wait_with_buckets(Op op, MicrobatchSlice of, SimTime start);
  SimTime end_of(Op op, MicrobatchSlice of, SimTime start) const;

  const int stage_;
  const TimedStageBytes bytes_;
  const double speed_;
  bool in_pair_ = false;
  const CostTable& costs_;
  const Sleeper& sleeper_;
  TensorPool& pool_;
  std::vector<Tensor> gradients_;  // [bucket]
  BucketHook complete_;
};

}}  // namespace plumb::executor
