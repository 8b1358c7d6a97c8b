#pragma once
// Training on a GPU, through libplumb_cuda.so beside the tool.

#include <optional>
#include <string>

#include "executor/device/cuda_library.h"
#include "executor/nccl/nccl_library.h"
#include "executor/run_result.h"
#include "executor/run_spec.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

/// The library, once it is sure that there is a GPU. Throws RunError with what is missing and the remedy.
const CudaLibrary& open_cuda();

/// What the library has of NCCL. Throws RunError with what is missing and the remedy.
const NcclLibrary& open_nccl();

/// Throws InputError if another backend is given what only this one has.
void require_cuda_arguments_on_cuda(const ReplayArguments& arguments);

/// The library, once it is sure that there is a GPU and that what is asked for fits the number of processes. Throws
/// InputError or RunError with what is missing and the remedy.
const CudaLibrary& require_cuda(const CudaArguments& arguments);

/// "NVIDIA H100 80GB HBM3, sm_90, 132 SMs, 79.2 GiB, CUDA 13.0".
std::string cuda_device_text(const CudaLibrary& library);

/// "even", "all" (no parts), or a share each ("3,1"). Throws SpecError otherwise.
CudaSharing cuda_sharing(const std::string& sms, bool graph = false);

/// All ranks on one GPU, each on one of its own, or, of several processes, this one's rank on its GPU: nothing on all
/// processes but the first. The timelines' titles say how the ranks shared the GPU. Throws RunError with what went
/// wrong, and RunAborted where another rank says it.
std::optional<RunResult> run_on_cuda(const CudaLibrary& library, const RunSpec& spec, const CudaArguments& arguments,
                                     Seconds expected, const DeviceRunOptions& options = {});

/// True if ranks have a GPU each: then no checkpoints are written, and no step ends early.
bool trains_apart(const CudaLibrary& library, const RunSpec& spec, const CudaArguments& arguments);

/// Whether this process has one rank of several.
bool is_one_cuda_rank(const CudaArguments& arguments);

}}  // namespace plumb::tools
