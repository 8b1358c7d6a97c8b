// Memory of the device and pinned memory of the host. CUDA's "API synchronization behavior" says that a copy from
// pageable memory returns when it is staged, and a fill before it is done.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/executor/machines/cuda/played/state.h"

using namespace plumb::test::played;

namespace {

constexpr std::int64_t kMallocAlignment = 256;          // cudaMalloc() promises no more
constexpr std::size_t kFilled = std::size_t{1} << 20U;  // bytes filled with NaNs, before and after

std::byte* take(State& state, std::size_t bytes, int device) {
  // The address is an odd multiple of 256, with room of the same size before it.
  auto* raw = static_cast<std::byte*>(std::aligned_alloc(512, (bytes + 1023) / 512 * 512));
  std::byte* at = raw + kMallocAlignment;
  state.memory[at] = {.bytes = static_cast<std::int64_t>(bytes), .device = device};
  std::memset(at, 0xFF, std::min(bytes, kFilled));
  return at;
}

cudaError_t give_back(const Call& call, void* memory, bool is_device) {
  if (memory == nullptr) return cudaSuccess;
  const auto place = call->memory.find(static_cast<std::byte*>(memory));
  if (place == call->memory.end() || (place->second.device >= 0) != is_device)
    return call.fault(cudaErrorInvalidValue, "memory that was not allocated so, or is free");
  if (is_device) call->contexts[static_cast<std::size_t>(place->second.device)].taken_bytes -= place->second.bytes;
  std::memset(memory, 0xFF, std::min(static_cast<std::size_t>(place->second.bytes), kFilled));
  std::free(static_cast<std::byte*>(memory) - kMallocAlignment);
  call->memory.erase(place);
  return cudaSuccess;
}

struct Ends {
  bool to_device = false, from_device = false, to_pinned = false, from_pinned = false;
};

cudaError_t check_copy(const Call& call, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                       Ends& ends) {
  for (const void* at : {static_cast<const void*>(to), from}) {
    int device = -1;
    bool is_known = false;
    if (!call->is_within(at, bytes, device, is_known))
      return call.fault(cudaErrorInvalidValue, "copies beyond an allocation");
    (at == to ? ends.to_device : ends.from_device) = is_known && device >= 0;
    (at == to ? ends.to_pinned : ends.from_pinned) = is_known && device < 0;
  }
  const bool agrees = kind == cudaMemcpyDefault ||
                      (ends.to_device == (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) &&
                       ends.from_device == (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice));
  return agrees ? cudaSuccess : call.fault(cudaErrorInvalidMemcpyDirection, "is not the direction of this memory");
}

/// Waits for everything on the device's default stream.
cudaError_t settle(Call& call) {
  const cudaStream_t legacy = call->contexts[static_cast<std::size_t>(current_device())].legacy;
  return call->wait(
      call.lock(), current_device(), [=] { return legacy->queue.empty(); }, call.function());
}

}  // namespace

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const Call call("cudaMalloc", Call::Kind::kUnsafe);
  if (call.error() != cudaSuccess) return call.error();
  if (const cudaError_t error = refused(call); error != cudaSuccess) return error;
  Context& context = call->contexts[static_cast<std::size_t>(current_device())];
  ++call->counts.allocations;
  if (context.taken_bytes + static_cast<std::int64_t>(bytes) > call->options.memory_bytes)
    return cudaErrorMemoryAllocation;
  context.taken_bytes += static_cast<std::int64_t>(bytes);
  call->counts.most_bytes = std::max(call->counts.most_bytes, context.taken_bytes);
  *memory = take(call.state(), bytes, current_device());
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  const Call call("cudaMallocHost", Call::Kind::kUnsafe);
  if (call.error() != cudaSuccess) return call.error();
  if (const cudaError_t error = refused(call); error != cudaSuccess) return error;
  ++call->counts.allocations;
  *memory = take(call.state(), bytes, -1);
  return cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  Call call("cudaFree", Call::Kind::kUnsafe);
  if (call.error() == cudaSuccess && memory != nullptr) {
    const auto is_idle = [&] { return call->is_idle(current_device()); };
    if (!is_idle() && call->wait(call.lock(), current_device(), is_idle, call.function()) == cudaErrorLaunchTimeout)
      return cudaErrorLaunchTimeout;
  }
  const cudaError_t error = call.error() == cudaErrorNoDevice ? cudaSuccess : give_back(call, memory, true);
  return call.error() != cudaSuccess ? call.error() : error;
}

cudaError_t cudaFreeHost(void* memory) {
  const Call call("cudaFreeHost", Call::Kind::kUnsafe);
  const cudaError_t error = give_back(call, memory, false);
  return call.error() != cudaSuccess ? call.error() : error;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const Call call("cudaMemGetInfo");
  if (call.error() != cudaSuccess) return call.error();
  const Context& context = call->contexts[static_cast<std::size_t>(current_device())];
  *total = static_cast<std::size_t>(call->options.memory_bytes);
  *free = *total - static_cast<std::size_t>(context.taken_bytes);
  return cudaSuccess;
}

cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  Call call("cudaMemset", Call::Kind::kUnsafe);
  if (call.error() != cudaSuccess) return call.error();
  int device = -1;
  bool is_known = false;
  if (!call->is_within(memory, bytes, device, is_known) || !is_known)
    return call.fault(cudaErrorInvalidValue, "fills beyond an allocation");
  return call.enqueue(call->contexts[static_cast<std::size_t>(current_device())].legacy, [=] {
    std::memset(memory, value, bytes);
    return true;
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  Call call("cudaMemcpy", Call::Kind::kUnsafe);
  if (call.error() != cudaSuccess) return call.error();
  Ends ends;
  if (const cudaError_t error = check_copy(call, to, from, bytes, kind, ends); error != cudaSuccess) return error;
  const cudaStream_t legacy = call->contexts[static_cast<std::size_t>(current_device())].legacy;
  const bool is_staged = ends.to_device && !ends.from_device && !ends.from_pinned;
  if (is_staged) {
    if (const cudaError_t error = settle(call); error != cudaSuccess) return error;
    const auto* bytes_of = static_cast<const std::byte*>(from);
    auto staged = std::make_shared<std::vector<std::byte>>(bytes_of, bytes_of + bytes);
    return call.enqueue(legacy, [=] {
      if (bytes > 0) std::memcpy(to, staged->data(), bytes);
      return true;
    });
  }
  call.enqueue(legacy, [=] {
    if (bytes > 0) std::memmove(to, from, bytes);
    return true;
  });
  return ends.to_device && ends.from_device ? cudaSuccess : settle(call);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  Call call("cudaMemcpyAsync");
  if (call.error() != cudaSuccess) return call.error();
  if (const cudaError_t error = call->stream_of(stream, call.function()); error != cudaSuccess) return error;
  Ends ends;
  if (const cudaError_t error = check_copy(call, to, from, bytes, kind, ends); error != cudaSuccess) return error;
  if ((!ends.to_device && !ends.to_pinned) || (!ends.from_device && !ends.from_pinned))
    return call.fault(cudaErrorInvalidValue, "host memory that is not pinned makes it wait");
  return call.enqueue(stream, [=] {
    if (bytes > 0) std::memmove(to, from, bytes);
    return true;
  });
}
