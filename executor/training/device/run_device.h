#pragma once
// Trains on one device, where every rank of the schedule is a set of its streams. RunSpec, samples and initial weights
// are those of the cpu backend. A replay is planned before the first (executor/device_plan), and enqueued without
// waiting on the host.

#include <functional>

#include "executor/machines/device_machine.h"
#include "executor/parameters/device/optimizer_places.h"
#include "executor/spec/run_spec.h"
#include "executor/training/interruption.h"
#include "executor/training/run_result.h"

namespace plumb { inline namespace executor {

struct DeviceRunOptions {
  bool capture_gradients = false;  ///< keep the gradients that each optimizer step consumes (for tests)
  bool capture_weights = false;    ///< keep the weights after the last step (for tests)
  int checkpoint_every = 0;        ///< replays from one to the next, the last at the end; 0: none
  std::function<void(const TrainingState&)> checkpoint;  ///< called with each, between replays
  EndQuestion ends;  ///< true if the run is to end before its last step; only where one device has all ranks
  std::int64_t update_window_bytes = kUpdateWindowBytes;  ///< for an optimizer whose state is on the host
};

/// Throws SpecError with a remedy if a device does not run the spec: a layer without has_device_kernels(), state that some
/// of the replicas share, experts that fewer ranks share than the tensor group has, slices of Mamba-2's blocks, routers
/// with 2^24 picks of a micro-batch or more.
void require_device_runnable(const RunSpec& spec);

/// Trains all ranks. Throws what require_device_runnable() and plan_training() throw, and RunError by kind of bytes if
/// weights and arenas do not fit the device. Timelines have the times of the device's calls; a RECV has those of its
/// message's copy.
RunResult run_device(const RunSpec& spec, DeviceMachine& machine, const DeviceRunOptions& options = {});

/// Result of one rank of the world. The outcome is the rank's own; run_result() makes the run's of all ranks'. Captured
/// values have the whole model's shape, with 0 where other ranks speak: the sum over ranks is the model's.
struct DeviceRankResult {
  RankOutcome outcome;
  std::vector<ModelValues> gradients;  ///< [step]
  ModelValues weights;
};

/// Trains one rank of the world on a machine of its own, which meets the others' through DeviceMachine::join() and
/// exchange(). All of them run the same spec. Throws what run_device() throws, and SpecError if the schedule evicts or
/// checkpoints are asked for.
DeviceRankResult run_device_rank(const RunSpec& spec, int world_rank, DeviceMachine& machine,
                                 const DeviceRunOptions& options = {});

}}  // namespace plumb::executor
