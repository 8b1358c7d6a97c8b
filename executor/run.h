#pragma once
// Trains with real numerics: the cpu backend. One thread a rank, in this process.
//
//   const RunResult result = run(spec);
//   result.losses.back();

#include <array>
#include <functional>
#include <vector>

#include "executor/collective.h"
#include "executor/parameter_bytes.h"
#include "executor/run_spec.h"
#include "executor/training_state.h"
#include "schedules/time.h"
#include "traces/timeline.h"

namespace plumb {

struct RunOptions {
  bool capture_gradients = false;  ///< keep what each optimizer step consumes (for tests)
  bool capture_weights = false;    ///< keep the weights after the last step (for tests)
  int checkpoint_every = 0;        ///< replays; 0: no checkpoints. The last one has one too.
  std::function<void(const TrainingState&)>
      checkpoint;  ///< called with each, on a rank's thread, while all others wait
};

/// A value for each parameter of the model: [layer of the model][parameter, as layer_parameters() lists them][element].
using ModelValues = std::vector<std::vector<std::vector<float>>>;

struct RunResult {
  int first_step = 0;                 ///< that this run did: what `resume` had behind it
  std::vector<double> losses;         ///< [optimizer step] mean over the tokens of its batch, before the update
  std::vector<Seconds> step_seconds;  ///< [replay] from the common start to the last rank's end
  std::vector<Timeline> timelines;    ///< [replay] measured, of the first tensor and context rank of replica 0
  std::vector<std::int64_t> peak_memory_bytes;  ///< [pipeline rank] likewise, tensors in the whole run
  std::vector<std::int64_t> peak_host_bytes;    ///< [pipeline rank] likewise, what was offloaded to the host's memory
  std::vector<ParameterBytes> parameter_bytes;  ///< [world rank] held between steps, by what they are
  /// [world rank][CollectiveOp] buffers of its tensor group's collectives, in the whole run; zeros in a group of one.
  std::vector<std::array<std::int64_t, kCollectiveOpCount>> tensor_group_bytes;
  std::vector<std::int64_t> allocations;  ///< [world rank] of tensor memory, in the whole run
  std::vector<double> loss_scales;        ///< [replay] that it began with; 1 but in fp16
  int skipped_steps = 0;                  ///< whose gradients overflowed
  std::vector<ModelValues> gradients;     ///< [optimizer step] as they reach the optimizer
  ModelValues weights;                    ///< after the last step
};

/// Replays spec.schedule `spec.steps` times. Global micro-batch g of replica r is r * m + i; a sample's text and every
/// initial weight depend on the seed alone, so results are those of any other layout up to the order of additions, and
/// the same every time. Memory counts every tensor: weights and their versions, gradients, moments, activations,
/// messages that wait; not the scratch of attention (512 s bytes a rank) and what a buffered message occupies on its
/// way. With
/// `resume` it goes on as the run that the state is of would have gone on. Throws SpecError or InputError if the
/// specification is not consistent (place and remedy), or the state is of another training, ScheduleError if the
/// schedule cannot be replayed (plan_replay), RunError if a rank fails; then all ranks have stopped.
RunResult run(const RunSpec& spec, const RunOptions& options = {});

}  // namespace plumb
