#pragma once
// Selective offloading lets the activations that live longest wait in host memory.
//
//   0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1, 1 stage  ->
//   0F0 0OFFLOAD0 0F1 0OFFLOAD1 2F0 2F1 2B0 0RELOAD0 2B1 0RELOAD1 0B0 0B1

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Offloads, on each rank, all activations of as many of its stages: those whose activations live longest, which free
/// the most memory for each byte moved (PipeOffload, Wan et al. 2025, chooses by lifespan). A life is counted
/// in the rank's compute actions from F to the backward (R, I or B), and averaged over micro-batches and slices; of
/// equal ones the stage of the earlier model part goes. An OFFLOAD stands ahead of the next compute action behind its
/// F, and a RELOAD one compute action ahead of its backward, so that both can run beside computing. An activation that
/// is needed within two compute actions stays. Pairs stay together; the order of the compute actions stays. Runs behind
/// add_recompute and ahead of add_messages. Throws ScheduleError if `stages` is negative, or if the schedule moves
/// activations already.
Schedule add_lifespan_offload(Schedule schedule, int stages);

}}  // namespace plumb::schedules
