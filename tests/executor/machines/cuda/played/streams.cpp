// Streams, events, kernels.

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "tests/executor/machines/cuda/played/state.h"

using namespace plumb::test::played;

namespace {

constexpr int kLeastPriority = 0, kGreatestPriority = -5;

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool event_exists(const Call& call, cudaEvent_t event) {
  const bool is_there =
      std::ranges::find(call->events, event, [](const auto& one) { return one.get(); }) != call->events.end();
  if (is_there && event->is_alive) return true;
  call->fault(call.function(), "no such event, or one that was destroyed");
  return false;
}

cudaError_t make_event(cudaEvent_t* event, unsigned flags, const char* function) {
  const Call call(function);
  if (call.error() != cudaSuccess) return call.error();
  if (const cudaError_t error = refused(call); error != cudaSuccess) return error;
  *event = call->events.emplace_back(std::make_unique<CUevent_st>()).get();
  (*event)->device = current_device();
  (*event)->has_time = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}

cudaError_t record_event(cudaEvent_t event, cudaStream_t stream, unsigned flags, const char* function) {
  Call call(function);
  if (call.error() != cudaSuccess) return call.error();
  if (const cudaError_t error = call->stream_of(stream, function); error != cudaSuccess) return error;
  if (!event_exists(call, event)) return cudaErrorInvalidResourceHandle;
  if (event->device != stream->device)
    return call.fault(cudaErrorInvalidResourceHandle, "event and stream are of two devices");
  if (flags == cudaEventRecordExternal) {
    if (stream->capture == nullptr) return call.fault(cudaErrorIllegalState, "external outside of a capture");
    return call.enqueue(stream, [event] {
      event->moment = std::make_shared<Moment>(Moment{.is_over = true, .ns = now()});
      event->capture = nullptr;
      return true;
    });
  }
  event->capture = stream->capture;
  event->nodes = stream->last;
  if (stream->capture != nullptr) return cudaSuccess;
  event->moment = std::make_shared<Moment>();
  return call.enqueue(stream, [moment = event->moment] {
    *moment = {.is_over = true, .ns = now()};
    return true;
  });
}

/// Loads a kernel's code before its first launch on the device.
cudaError_t load_code(Call& call, int device, const char* name) {
  Context& context = call->contexts[static_cast<std::size_t>(device)];
  if (!context.kernels.insert(name).second) return cudaSuccess;
  ++call->counts.loaded_kernels;
  context.taken_bytes += call->options.code_bytes;
  if (context.taken_bytes > call->options.memory_bytes) return cudaErrorMemoryAllocation;
  if (!call->options.loads_late) return cudaSuccess;
  return call->wait(
      call.lock(), device, [&] { return call->is_idle(device); }, "the code of a kernel");
}

}  // namespace

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  const Call call("cudaStreamCreateWithPriority");
  if (call.error() != cudaSuccess) return call.error();
  if (const cudaError_t error = refused(call); error != cudaSuccess) return error;
  if (flags != cudaStreamNonBlocking)
    call.fault(cudaErrorInvalidValue, "a stream that waits for the default one: there are none here");
  if (priority > kLeastPriority || priority < kGreatestPriority)
    call.fault(cudaErrorInvalidValue, "a priority that the device does not have");
  *stream = call->make_stream(current_device(), call->options.multiprocessors, priority);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, kLeastPriority);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = kLeastPriority;
  *greatest = kGreatestPriority;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Call call("cudaStreamDestroy");
  if (stream == nullptr) return call.fault(cudaErrorInvalidResourceHandle, "the default stream");
  if (const cudaError_t error = call->stream_of(stream, call.function()); error != cudaSuccess) return error;
  if (stream->capture != nullptr) call.fault(cudaErrorUnknown, "of a stream that is captured");
  // The work on the stream is still done.
  if (call.error() == cudaSuccess)
    call->wait(
        call.lock(), stream->device, [=] { return stream->queue.empty(); }, call.function());
  stream->queue.clear();
  stream->is_alive = false;
  call->contexts[static_cast<std::size_t>(stream->device)].streams.erase(stream);
  return call.error();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  Call call("cudaStreamWaitEvent");
  if (call.error() != cudaSuccess) return call.error();
  if (const cudaError_t error = call->stream_of(stream, call.function()); error != cudaSuccess) return error;
  if (!event_exists(call, event)) return cudaErrorInvalidResourceHandle;
  if (event->capture != nullptr) {
    const bool is_under_way = std::ranges::find(call->captures, event->capture) != call->captures.end();
    if (!is_under_way) return call.fault(cudaErrorInvalidValue, "for an event of a capture that is over");
    if (stream->capture != nullptr && stream->capture != event->capture)
      return call.fault(cudaErrorStreamCaptureMerge, "would make two captures one");
    if (stream->capture == nullptr) stream->last.clear();
    stream->capture = event->capture;
    stream->capture->streams.insert(stream);
    for (const std::size_t node : event->nodes)
      if (std::ranges::find(stream->last, node) == stream->last.end()) stream->last.push_back(node);
    return cudaSuccess;
  }
  if (stream->capture != nullptr) {
    stream->capture->is_broken = true;
    return call.fault(cudaErrorStreamCaptureIsolation, "a capture waits for an event from outside of it");
  }
  if (event->moment == nullptr) return call.fault(cudaSuccess, "for an event that was never recorded");
  return call.enqueue(stream, [moment = event->moment] { return moment->is_over; });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Call call("cudaStreamQuery", Call::Kind::kUnsafe);
  if (call.error() != cudaSuccess) return call.error();
  if (const cudaError_t error = call->stream_of(stream, call.function()); error != cudaSuccess) return error;
  call->step_on();
  if (!call->contexts[static_cast<std::size_t>(stream->device)].sticky.empty()) return cudaErrorIllegalAddress;
  return stream->queue.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Call call("cudaStreamSynchronize", Call::Kind::kUnsafe);
  if (call.error() != cudaSuccess) return call.error();
  if (const cudaError_t error = call->stream_of(stream, call.function()); error != cudaSuccess) return error;
  return call->wait(
      call.lock(), stream->device, [=] { return stream->queue.empty(); }, call.function());
}

cudaError_t cudaDeviceSynchronize() {
  Call call("cudaDeviceSynchronize", Call::Kind::kUnsafe);
  if (call.error() != cudaSuccess) return call.error();
  const int device = current_device();
  return call->wait(
      call.lock(), device, [&] { return call->is_idle(device); }, call.function());
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return make_event(event, cudaEventDefault, "cudaEventCreate");
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return make_event(event, flags, "cudaEventCreateWithFlags");
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Call call("cudaEventDestroy");
  if (!event_exists(call, event)) return cudaErrorInvalidResourceHandle;
  event->is_alive = false;
  return call.error();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return record_event(event, stream, cudaEventRecordDefault, "cudaEventRecord");
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return record_event(event, stream, flags, "cudaEventRecordWithFlags");
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Call call("cudaEventQuery", Call::Kind::kUnsafe);
  if (call.error() != cudaSuccess) return call.error();
  if (!event_exists(call, event)) return cudaErrorInvalidResourceHandle;
  if (event->capture != nullptr) return call.fault(cudaErrorCapturedEvent, "of an event that a capture recorded");
  call->step_on();
  if (!call->contexts[static_cast<std::size_t>(event->device)].sticky.empty()) return cudaErrorIllegalAddress;
  return event->moment == nullptr || event->moment->is_over ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  const Call call("cudaEventElapsedTime");
  if (call.error() != cudaSuccess) return call.error();
  for (const cudaEvent_t event : {from, to}) {
    if (!event_exists(call, event)) return cudaErrorInvalidResourceHandle;
    if (!event->has_time) return call.fault(cudaErrorInvalidResourceHandle, "an event that was made without timing");
    if (event->moment == nullptr) return call.fault(cudaErrorInvalidResourceHandle, "an event never recorded");
    if (!event->moment->is_over) return call.fault(cudaErrorNotReady, "an event that is not over yet");
  }
  *milliseconds = static_cast<float>(static_cast<double>(to->moment->ns - from->moment->ns) * 1e-6);
  return cudaSuccess;
}

cudaError_t plumb::test::played::launch(cudaStream_t stream, const char* name, std::function<void()> kernel) {
  Call call(name);
  if (call.error() != cudaSuccess) return call.error();
  if (const cudaError_t error = call->stream_of(stream, name); error != cudaSuccess) return error;
  if (stream->device != current_device())
    return call.fault(cudaErrorInvalidResourceHandle, "a stream of another device than the current one");
  if (const cudaError_t error = load_code(call, stream->device, name); error != cudaSuccess) return error;
  ++call->counts.kernels;
  return call.enqueue(stream, [&state = call.state(), device = stream->device, name, kernel = std::move(kernel)] {
    Context& context = state.contexts[static_cast<std::size_t>(device)];
    if (context.held_sms >= state.options.multiprocessors) return false;  // no SM is left to run on
    if (state.kernel++ == state.options.faulty_kernel) {
      context.sticky = name;
      return false;
    }
    kernel();
    return true;
  });
}

int plumb::test::played::multiprocessors_of(cudaStream_t stream) {
  const std::lock_guard lock(State::get().mutex);
  return stream->multiprocessors;
}
