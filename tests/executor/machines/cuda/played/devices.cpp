// Devices, the texts of errors, and NVTX's ranges.

#include <nvtx3/nvToolsExt.h>

#include <cstring>

#include "tests/executor/machines/cuda/played/state.h"

using namespace plumb::test::played;

cudaError_t cudaGetDeviceCount(int* count) {
  const Call call("cudaGetDeviceCount");
  *count = call.error() == cudaSuccess ? call->options.devices : 0;
  return call.error();
}

cudaError_t cudaSetDevice(int device) {
  const Call call("cudaSetDevice");
  if (!call->options.has_driver || call->options.has_old_driver) return call.error();
  if (device < 0 || device >= call->options.devices) return cudaErrorInvalidDevice;
  current_device() = device;
  return call->contexts[static_cast<std::size_t>(device)].sticky.empty() ? cudaSuccess : cudaErrorIllegalAddress;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const Call call("cudaDeviceGetAttribute");
  if (call.error() != cudaSuccess) return call.error();
  if (attribute == cudaDevAttrMultiProcessorCount)
    *value = call->options.multiprocessors;
  else if (attribute == cudaDevAttrComputeCapabilityMajor)
    *value = call->options.major;
  else
    return call.fault(cudaErrorInvalidValue, "this attribute is not played");
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  const Call call("cudaGetDeviceProperties");
  if (call.error() != cudaSuccess) return call.error();
  *properties = {};
  std::strcpy(properties->name, "a GPU played by the host");
  properties->major = call->options.major;
  properties->multiProcessorCount = call->options.multiprocessors;
  properties->totalGlobalMem = static_cast<std::size_t>(call->options.memory_bytes);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  const Call call("cudaDeviceGetPCIBusId");
  if (call.error() != cudaSuccess) return call.error();
  if (length < 13) return call.fault(cudaErrorInvalidValue, "no room for a PCI bus id");
  std::strcpy(text, call->bus_of(device).c_str());
  return cudaSuccess;
}

cudaError_t cudaPeekAtLastError() {
  return Call("cudaPeekAtLastError").error();
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    default:
      return "another error";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    default:
      return "something else is wrong";
  }
}

namespace {

thread_local int call_depth = 0;

int push(const char* name) {
  State& state = State::get();
  const std::lock_guard lock(state.mutex);
  state.ranges.emplace_back(name);
  ++state.open["ranges of NVTX"];
  return call_depth++;
}

int pop() {
  State& state = State::get();
  const std::lock_guard lock(state.mutex);
  if (call_depth == 0) {
    state.fault("nvtxRangePop", "there is none on this thread");
    return -1;
  }
  --state.open["ranges of NVTX"];
  return --call_depth;
}

}  // namespace

/// Registers with NVTX as a profiler does (nvtx3/nvtxDetail/nvtxInit.h).
extern "C" __attribute__((visibility("default"))) int plumb_played_nvtx(NvtxGetExportTableFunc_t get_table) {
  const auto* tables = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (tables == nullptr || tables->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0) return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(push);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}
