#pragma once
// What a process that never says restart() plays, by its environment: PLUMB_PLAYED="devices=2,memory_mib=512,seed=4".
//
//   devices, multiprocessors, major, memory_mib, seed, faulty_kernel, faulty_device, nccl_fails_at, nccl_stalls_at,
//   nccl_signal_at, signal, refused_call        as in Options
//   driver=0, driver=old                        none, one that is older than the runtime
//   green_contexts=0, green_contexts=refused    a driver without their functions, one that refuses them
//
// CUDA_VISIBLE_DEVICES says which of them it sees, by numbers. What there was to find fault with is added to the file
// PLUMB_PLAYED_FAULTS when the process ends.

#include "tests/executor/cuda/played/played.h"

namespace plumb::test::played {

/// Ends the process with a sentence where a word is none of these.
Options options_of_environment();

/// Has faults() written at the end, if a file is named.
void report_faults_at_exit();

}  // namespace plumb::test::played
