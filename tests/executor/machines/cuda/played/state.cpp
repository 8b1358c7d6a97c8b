#include "tests/executor/machines/cuda/played/state.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tests/executor/machines/cuda/played/environment.h"

namespace plumb::test::played {

int& current_device() {
  thread_local int device = 0;
  return device;
}

namespace {

void begin(State& state, const Options& options) {
  for (const auto& [at, memory] : state.memory) std::free(at - 256);
  state.memory.clear();
  state.captures.clear();
  state.contexts.clear();
  state.streams.clear();
  state.events.clear();
  state.graphs.clear();
  state.launchables.clear();
  state.faults.clear();
  state.ranges.clear();
  state.open.clear();
  state.counts = {};
  state.kernel = 0;
  state.nccl_calls.assign(static_cast<std::size_t>(options.devices), 0);
  state.options = options;
  state.random.seed(options.seed);
  current_device() = 0;
  state.contexts.resize(static_cast<std::size_t>(options.devices));
  for (int device = 0; device < options.devices; ++device) {
    Context& context = state.contexts[static_cast<std::size_t>(device)];
    CUstream_st& legacy = *state.streams.emplace_back(std::make_unique<CUstream_st>());
    legacy.device = device;
    legacy.multiprocessors = options.multiprocessors;
    legacy.turn = state.random.max();
    context.legacy = &legacy;
    context.streams.insert(&legacy);
  }
}

}  // namespace

/// A process that never calls restart() takes its options from its environment.
State& State::get() {
  static State& state = []() -> State& {
    auto* made = new State;  // never deleted, since threads may outlive static objects
    begin(*made, options_of_environment());
    report_faults_at_exit();
    return *made;
  }();
  return state;
}

bool State::step_graph(GraphRun& run) {
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < run.is_over.size(); ++i)
    if (!run.is_over[i] &&
        std::ranges::all_of(run.nodes->all[i].behind, [&](std::size_t earlier) { return run.is_over[earlier]; }))
      ready.push_back(i);
  std::ranges::shuffle(ready, random);
  for (const std::size_t node : ready)
    if (run.nodes->all[node].work()) {
      run.is_over[node] = true;
      --run.left;
      return true;
    }
  return false;
}

bool State::may_begin(const CUstream_st& stream) const {
  if (stream.connection < 0 || stream.queue.front().has_begun) return true;
  const auto stands_before = [&](cudaStream_t other) {
    if (other->connection != stream.connection) return false;
    for (const Enqueued& work : other->queue)
      if (!work.has_begun) return work.number < stream.queue.front().number;
    return false;
  };
  return std::ranges::none_of(contexts[static_cast<std::size_t>(stream.device)].streams, stands_before);
}

bool State::step() {
  std::vector<cudaStream_t> busy;
  for (const Context& context : contexts)
    if (context.sticky.empty())
      for (const cudaStream_t stream : context.streams)
        if (!stream->queue.empty() && may_begin(*stream)) busy.push_back(stream);
  std::ranges::shuffle(busy, random);
  // A device that lags behind serves streams by turns that last, so that work that is not waited for comes late.
  if (options.seed % 3 == 0) {
    if (!busy.empty() && random() % 32 == 0) busy.front()->turn = random();
    std::ranges::stable_sort(busy, {}, [](cudaStream_t stream) { return stream->turn; });
  }
  for (const cudaStream_t stream : busy) {
    Enqueued& next = stream->queue.front();
    bool is_over = false, has_moved = false;
    if (next.graph != nullptr) {
      has_moved = step_graph(*next.graph);
      is_over = next.graph->left == 0;
    } else {
      has_progress_ = false;
      is_over = next.work();
      has_moved = is_over || has_progress_;
    }
    next.has_begun |= has_moved;
    if (is_over && !stream->queue.empty()) stream->queue.pop_front();
    if (!has_moved && !is_over) continue;
    moved.notify_all();
    return true;
  }
  return false;
}

void State::step_on() {
  for (auto steps = random() % 32; steps > 0 && step(); --steps) {
  }
}

cudaError_t State::wait(std::unique_lock<std::mutex>& lock, int device, const std::function<bool()>& is_over,
                        const char* function) {
  ++counts.synchronizations;
  const auto end = std::chrono::steady_clock::now() + options.patience;
  const Context& context = contexts[static_cast<std::size_t>(device)];
  while (context.sticky.empty() && !is_over()) {
    if (step()) continue;
    moved.wait_for(lock, std::chrono::milliseconds(1));
    if (std::chrono::steady_clock::now() > end) {
      fault(function, "waits for what never comes");
      return cudaErrorLaunchTimeout;
    }
  }
  return context.sticky.empty() ? cudaSuccess : cudaErrorIllegalAddress;
}

std::string State::bus_of(int device) const {
  char text[16];
  const auto own = static_cast<std::size_t>(device);
  std::snprintf(text, sizeof text, "0000:%02x:00.0",
                own < options.visible.size() ? options.visible[own] + 1 : device + 1);
  return text;
}

bool State::is_idle(int device) const {
  return std::ranges::all_of(contexts[static_cast<std::size_t>(device)].streams,
                             [](cudaStream_t stream) { return stream->queue.empty(); });
}

cudaError_t State::stream_of(cudaStream_t& stream, const char* function) {
  if (stream == nullptr) {
    stream = contexts[static_cast<std::size_t>(current_device())].legacy;
    return cudaSuccess;
  }
  const auto found = std::ranges::find(streams, stream, [](const auto& one) { return one.get(); });
  if (found != streams.end() && stream->is_alive) return cudaSuccess;
  fault(function, "no such stream, or one that was destroyed");
  return cudaErrorInvalidResourceHandle;
}

cudaStream_t State::make_stream(int device, int multiprocessors, int priority) {
  CUstream_st& made = *streams.emplace_back(std::make_unique<CUstream_st>());
  Context& context = contexts[static_cast<std::size_t>(device)];
  made.device = device;
  made.multiprocessors = multiprocessors;
  made.connection = context.made_streams++ % options.connections;
  context.streams.insert(&made);
  ++counts.streams;
  if (priority < 0) ++counts.urgent_streams;
  return &made;
}

void State::put(cudaStream_t stream, Enqueued work) {
  if (stream->capture != nullptr) {
    Nodes& nodes = *stream->capture->nodes;
    nodes.all.push_back({std::move(work.work), stream->last});
    stream->last = {nodes.all.size() - 1};
    return;
  }
  work.number = enqueued_++;
  stream->queue.push_back(std::move(work));
}

std::map<std::byte*, Memory>::const_iterator State::place_of(const void* at) const {
  auto* byte = const_cast<std::byte*>(static_cast<const std::byte*>(at));
  auto next = memory.upper_bound(byte);
  if (next == memory.begin()) return memory.end();
  --next;
  return byte <= next->first + next->second.bytes ? next : memory.end();
}

bool State::is_within(const void* at, std::size_t bytes, int& device, bool& is_known) const {
  const auto place = place_of(at);
  is_known = place != memory.end();
  if (!is_known) return true;
  device = place->second.device;
  return static_cast<const std::byte*>(at) + bytes <= place->first + place->second.bytes;
}

Call::Call(const char* function, Kind kind) : function_(function), state_(State::get()), lock_(state_.mutex) {
  if (!state_.options.has_driver || state_.options.has_old_driver) {
    error_ = state_.options.has_driver ? cudaErrorInsufficientDriver : cudaErrorNoDevice;
    return;
  }
  const auto own = std::ranges::find_if(
      state_.captures, [](const CapturePtr& capture) { return capture->thread == std::this_thread::get_id(); });
  if (kind == Kind::kUnsafe && own != state_.captures.end()) {
    (*own)->is_broken = true;
    error_ = fault(cudaErrorStreamCaptureUnsupported, "not while this thread captures a stream");
    return;
  }
  // The device is ahead not at all until it is waited for, by some steps, or as far as it can.
  if (state_.options.seed % 3 != 0)
    for (int steps = state_.options.seed % 3 == 1 ? static_cast<int>(state_.random() % 3) : 1 << 20; steps > 0; --steps)
      if (!state_.step()) break;
  if (!state_.contexts[static_cast<std::size_t>(current_device())].sticky.empty()) error_ = cudaErrorIllegalAddress;
}

cudaError_t Call::enqueue(cudaStream_t stream, Work work) {
  if (stream->capture == nullptr && stream->queue.size() >= state_.options.launch_queue) {
    ++state_.counts.full_queues;
    const auto has_room = [&] { return stream->queue.size() < state_.options.launch_queue; };
    if (const cudaError_t error = state_.wait(lock_, stream->device, has_room, function_); error != cudaSuccess)
      return error;
  }
  state_.put(stream, {.work = std::move(work), .graph = nullptr});
  return cudaSuccess;
}

cudaError_t refused(const Call& call) {
  return call->counts.made++ == call->options.refused_call ? cudaErrorMemoryAllocation : cudaSuccess;
}

void restart(const Options& options) {
  State& state = State::get();
  const std::lock_guard lock(state.mutex);
  begin(state, options);
}

std::vector<std::string> faults() {
  State& state = State::get();
  const std::lock_guard lock(state.mutex);
  std::vector<std::string> found = state.faults;
  const auto left = [&](const char* what, std::int64_t count) {
    if (count != 0) found.push_back(std::to_string(count) + " " + what + " left over");
  };
  const auto alive = [](const auto& all) {
    return std::ranges::count_if(all, [](const auto& one) { return one->is_alive; });
  };
  left("streams", alive(state.streams) - state.options.devices);
  left("events", alive(state.events));
  left("graphs", alive(state.graphs));
  left("graphs that can be launched", alive(state.launchables));
  left("allocations", static_cast<std::int64_t>(state.memory.size()));
  left("captures", static_cast<std::int64_t>(state.captures.size()));
  for (const auto& [kind, count] : state.open) left(kind.c_str(), count);
  return found;
}

Counts counts() {
  const std::lock_guard lock(State::get().mutex);
  return State::get().counts;
}

std::vector<std::string> ranges() {
  const std::lock_guard lock(State::get().mutex);
  return State::get().ranges;
}

}  // namespace plumb::test::played
