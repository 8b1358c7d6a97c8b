#pragma once
// Training on GPUs goes through libplumb_cuda.so, which lies beside the tool.

#include <optional>
#include <string>

#include "executor/cuda_library/cuda_library.h"
#include "executor/cuda_library/nccl_library.h"
#include "executor/spec/run_spec.h"
#include "executor/training/run_result.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

/// Returns the library after checking that there is a GPU. `meets_others`: as in set_cuda_environment(). Throws RunError
/// with what is missing and the remedy.
const CudaLibrary& open_cuda(bool meets_others = false);

/// Returns the library's functions over NCCL. Throws RunError with what is missing and the remedy.
const NcclLibrary& open_nccl();

/// Throws UsageError if another backend is given options that only this one has.
void require_cuda_arguments_on_cuda(const ReplayArguments& arguments);

/// Returns the library after checking that there is a GPU and that the options fit the number of processes. Throws
/// UsageError or RunError with what is missing and the remedy.
const CudaLibrary& require_cuda(const CudaArguments& arguments);

/// Returns the first GPU as "NVIDIA H100 80GB HBM3, sm_90, 132 SMs, 79.2 GiB, CUDA 13.0".
std::string cuda_device_text(const CudaLibrary& library);

/// Returns how ranks share a GPU's SMs: "even", "all" (the SMs are not divided), or a share for each rank ("3,1").
/// Throws UsageError for another text.
CudaSharing cuda_sharing(const std::string& sms, bool graph = false);

/// Starts a process for each rank if each is to have a GPU of its own and nobody has started them, and returns true when
/// all have ended. Throws what run_rank_processes() throws, and InputError or UsageError if the options ask for GPUs or
/// checkpoints that are not possible.
bool run_as_processes(const CudaLibrary& library, const RunSpec& spec, const CudaArguments& arguments,
                      bool has_checkpoints = false);

/// Trains with all ranks on one GPU, or, as one of several processes, with this process's rank on its GPU. Of several processes only the first returns a result. The titles of the timelines say how
/// the ranks shared the GPU. Throws InputError if the options ask for checkpoints that are not possible, RunError
/// with what went wrong, and RunAborted where another rank reports it.
std::optional<RunResult> run_on_cuda(const CudaLibrary& library, const RunSpec& spec, const CudaArguments& arguments,
                                     Seconds expected, const DeviceRunOptions& options = {});

/// Returns true if this process trains one rank of several. Then no checkpoints are written, and the run does not end
/// early.
bool is_one_cuda_rank(const CudaArguments& arguments);

/// Returns true if this process is the only one, or the one of several that reports.
bool is_first_process(const CudaArguments& arguments);

}}  // namespace plumb::tools
