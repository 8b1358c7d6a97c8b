#pragma once
// Trains on one device: every rank of the schedule is a set of its streams. The same RunSpec as the cpu backend's, the
// same samples and initial weights; what one replay does is planned before the first (executor/device_plan), and
// enqueued without waiting on the host.

#include <functional>

#include "executor/device/device_machine.h"
#include "executor/device/stage/optimizer_places.h"
#include "executor/interruption.h"
#include "executor/run_result.h"
#include "executor/run_spec.h"

namespace plumb { inline namespace executor {

struct DeviceRunOptions {
  bool capture_gradients = false;                        ///< keep what each optimizer step consumes (for tests)
  bool capture_weights = false;                          ///< keep the weights after the last step (for tests)
  int checkpoint_every = 0;                              ///< replays; 0: no checkpoints. The end has one too.
  std::function<void(const TrainingState&)> checkpoint;  ///< called with each, between replays
  EndQuestion ends;  ///< whether it is to end before its last step; only where one device has all ranks
  std::int64_t update_window_bytes = kUpdateWindowBytes;  ///< of an optimizer whose state is in the host's memory
};

/// Throws SpecError with a remedy if a device does not run the spec: latent attention, heads of more than 256 channels,
/// more than 32 experts a token, routers with 2^24 picks of a micro-batch or more.
void require_device_runnable(const RunSpec& spec);

/// Throws what require_device_runnable() and plan_training() throw, and RunError by kind of bytes if weights and arenas
/// do not fit the device. Timelines have the times of the device's calls; a RECV has those of its message's copy.
RunResult run_device(const RunSpec& spec, DeviceMachine& machine, const DeviceRunOptions& options = {});

/// One rank of the world on a machine of its own, which meets the others' through DeviceMachine::join() and exchange();
/// each of them runs the same spec. What it measured is its own; run_result() makes the whole of all ranks'. Captured
/// values are of the whole model's shape, with 0 where other ranks speak: the sum over ranks is the model's. Throws
/// what run_device() throws.
struct DeviceRankResult {
  RankOutcome outcome;
  std::vector<ModelValues> gradients;  ///< [step]
  ModelValues weights;
};
DeviceRankResult run_device_rank(const RunSpec& spec, int world_rank, DeviceMachine& machine,
                                 const DeviceRunOptions& options = {});

}}  // namespace plumb::executor
