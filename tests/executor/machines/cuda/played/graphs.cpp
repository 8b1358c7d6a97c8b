// Captures of streams, and the graphs that are made of them, whose nodes run in any order that their edges allow.

#include <algorithm>
#include <memory>

#include "tests/executor/machines/cuda/played/state.h"

using namespace plumb::test::played;

namespace {

template <class Handle>
cudaError_t destroy_handle(const Call& call, Handle handle) {
  if (handle == nullptr || !handle->is_alive) return call.fault(cudaErrorInvalidValue, "none, or one that is gone");
  handle->is_alive = false;
  return call.error();
}

/// True if all that the capture's streams have enqueued comes before the next work of its origin.
bool is_joined(const Capture& capture) {
  std::vector<bool> is_before(capture.nodes->all.size(), false);
  std::vector<std::size_t> left = capture.origin->last;
  while (!left.empty()) {
    const std::size_t node = left.back();
    left.pop_back();
    if (is_before[node]) continue;
    is_before[node] = true;
    for (const std::size_t earlier : capture.nodes->all[node].behind) left.push_back(earlier);
  }
  return std::ranges::find(is_before, false) == is_before.end();
}

}  // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const Call call("cudaStreamBeginCapture");
  if (call.error() != cudaSuccess) return call.error();
  if (stream == nullptr) return call.fault(cudaErrorStreamCaptureUnsupported, "of the default stream");
  if (const cudaError_t error = call->stream_of(stream, call.function()); error != cudaSuccess) return error;
  if (stream->capture != nullptr) return call.fault(cudaErrorIllegalState, "it is captured already");
  if (mode != cudaStreamCaptureModeThreadLocal) call.fault(cudaErrorUnknown, "only thread-local ones are played");
  stream->capture = call->captures.emplace_back(std::make_shared<Capture>());
  stream->capture->thread = std::this_thread::get_id();
  stream->capture->origin = stream;
  stream->capture->streams.insert(stream);
  stream->last.clear();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Call call("cudaStreamEndCapture");
  if (graph != nullptr) *graph = nullptr;
  if (call.error() != cudaSuccess && stream->capture == nullptr) return call.error();
  const CapturePtr capture = stream->capture;
  if (capture == nullptr || capture->origin != stream)
    return call.fault(cudaErrorIllegalState, "its capture did not begin there");
  if (capture->thread != std::this_thread::get_id())
    return call.fault(cudaErrorStreamCaptureWrongThread, "another thread began it");
  const bool is_whole = is_joined(*capture);
  for (const cudaStream_t one : capture->streams) one->capture = nullptr;
  std::erase(call->captures, capture);
  if (call.error() != cudaSuccess) return call.error();
  if (capture->is_broken) return cudaErrorStreamCaptureInvalidated;
  if (!is_whole) return call.fault(cudaErrorStreamCaptureUnjoined, "streams of the capture were not joined");
  *graph = call->graphs.emplace_back(std::make_unique<CUgraph_st>()).get();
  (*graph)->nodes = capture->nodes;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* launchable, cudaGraph_t graph, unsigned long long flags) {
  const Call call("cudaGraphInstantiate");
  if (call.error() != cudaSuccess) return call.error();
  if (graph == nullptr || !graph->is_alive || flags != 0) return call.fault(cudaErrorInvalidValue, "of no graph");
  if (const cudaError_t error = refused(call); error != cudaSuccess) return error;
  *launchable = call->launchables.emplace_back(std::make_unique<CUgraphExec_st>()).get();
  (*launchable)->nodes = graph->nodes;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Call call("cudaGraphDestroy");
  return destroy_handle(call, graph);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t launchable) {
  const Call call("cudaGraphExecDestroy");
  return destroy_handle(call, launchable);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t launchable, cudaStream_t stream) {
  const Call call("cudaGraphLaunch");
  if (call.error() != cudaSuccess) return call.error();
  if (const cudaError_t error = call->stream_of(stream, call.function()); error != cudaSuccess) return error;
  if (launchable == nullptr || !launchable->is_alive) return call.fault(cudaErrorInvalidValue, "of no graph");
  ++call->counts.graph_launches;
  auto run = std::make_shared<GraphRun>(GraphRun{.nodes = launchable->nodes,
                                                 .is_over = std::vector<bool>(launchable->nodes->all.size(), false),
                                                 .left = launchable->nodes->all.size()});
  call->put(stream, {.work = {}, .graph = std::move(run)});
  return cudaSuccess;
}
