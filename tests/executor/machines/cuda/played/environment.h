#pragma once
// The options of a process that never calls restart(), from its environment:
// PLUMB_PLAYED="devices=2,memory_mib=512,seed=4".
//
//   devices, multiprocessors, major, memory_mib, seed, faulty_kernel, faulty_device, nccl_fails_at, nccl_stalls_at,
//   nccl_signal_at, signal, refused_call, patience_ms, launch_queue, nccl_sms, code_kib, refuses_epilogues
//                                               the fields of Options
//   driver=0, driver=old                        no driver, or one that is older than the runtime
//   green_contexts=0, green_contexts=refused    a driver without their functions, or one that refuses them
//
// CUDA_VISIBLE_DEVICES gives the numbers of the devices that the process sees; CUDA_DEVICE_MAX_CONNECTIONS and
// CUDA_MODULE_LOADING are read as CUDA does. Its faults are appended to the file
// PLUMB_PLAYED_FAULTS when it ends.

#include "tests/executor/machines/cuda/played/played.h"

namespace plumb::test::played {

/// Returns the options. Ends the process with a sentence if a word is unknown.
Options options_of_environment();

/// Makes the process write faults() at its end, if a file is named.
void report_faults_at_exit();

}  // namespace plumb::test::played
