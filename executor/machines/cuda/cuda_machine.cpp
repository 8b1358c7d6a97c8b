#include "executor/machines/cuda/cuda_machine.h"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "executor/machines/cuda/check_cuda.h"
#include "executor/machines/cuda/cuda_kernels.h"
#include "executor/transport/poll_pause.h"
#include "executor/transport/transport.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor { namespace cuda {
namespace {

/// Room for the code of kernels, ours and cuBLASLt's, which CUDA loads when they are first launched.
constexpr std::int64_t kLoadedCodeBytes = std::int64_t{64} << 20U;
constexpr int kLaunchesOfWork = 4;      // one piece of work has one to five
constexpr int kLaunchesOfExchange = 8;  // kernels, events and waits that NCCL may put on a stream

/// Priority of a stream. What ranks exchange goes before compute, so that it takes the SMs that become free, and ends
/// early. Lower numbers go first.
int priority_of(DeviceStream stream) {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "the GPU");
  return stream == DeviceStream::kCompute ? least : greatest;
}

}  // namespace

CudaMachine::CudaMachine(int device, std::optional<HalfFormat> half, CudaSharing how, LinkedCalls* links)
    : device_(device), half_(half), how_(std::move(how)), links_(links) {
  if (links != nullptr && how_.graph)
    throw SpecError("a step over several GPUs is not launched as a graph: leave --cuda-graph away");
  check(cudaSetDevice(device), "the GPU");
  check(cudaFree(nullptr), "the GPU");  // this creates the context
  check(cudaDeviceGetAttribute(&all_multiprocessors_, cudaDevAttrMultiProcessorCount, device), "the GPU");
}

CudaMachine::~CudaMachine() {
  if (links_ != nullptr) links_->abort();
  if (has_range_) nvtxRangePop();
  if (captures_) {  // something failed during the capture
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(origin_, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }
  cudaDeviceSynchronize();
  if (launched_ != nullptr) cudaGraphExecDestroy(launched_);
  for (const CallEvents& events : events_)
    for (cudaEvent_t event : {events.start, events.end, events.done})
      if (event != nullptr) cudaEventDestroy(event);
  for (const Lane& lane : lanes_) {
    if (lane.joins != nullptr) cudaEventDestroy(lane.joins);
    if (lane.stream != nullptr) cudaStreamDestroy(lane.stream);
  }
  if (forks_ != nullptr) cudaEventDestroy(forks_);
  if (origin_ != nullptr) cudaStreamDestroy(origin_);
  for (void* memory : memory_) cudaFree(memory);
  for (void* memory : host_memory_) cudaFreeHost(memory);
}

std::string CudaMachine::sharing() const {
  if (products_.size() <= 1) return fmt::format("all {} SMs", all_multiprocessors_);
  if (contexts_ == nullptr) return fmt::format("streams on all {} SMs", all_multiprocessors_);
  if (contexts_->empty()) return fmt::format("streams on all {} SMs ({})", all_multiprocessors_, contexts_->refused());
  return fmt::format("green contexts of {} SMs", fmt::join(contexts_->multiprocessors(), " and "));
}

std::int64_t CudaMachine::free_bytes() const {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "the GPU's memory");
  return static_cast<std::int64_t>(free);
}

std::int64_t CudaMachine::own_bytes(int ranks) const {
  return kLoadedCodeBytes + ranks * static_cast<std::int64_t>(kProductWorkspaceBytes);
}

std::byte* CudaMachine::allocate(std::int64_t bytes) {
  void* memory = nullptr;
  const auto size = static_cast<std::size_t>(bytes);
  check(cudaMalloc(&memory, size), "memory of the GPU");
  memory_.push_back(memory);
  check(cudaMemset(memory, 0, size), "memory of the GPU");
  check(cudaStreamSynchronize(nullptr), "memory of the GPU");  // cudaMemset returns before it is done
  return static_cast<std::byte*>(memory);
}

std::byte* CudaMachine::allocate_on_host(std::int64_t bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, static_cast<std::size_t>(bytes)), "memory of the host");
  host_memory_.push_back(memory);
  return static_cast<std::byte*>(memory);
}

void CudaMachine::upload(void* to, std::span<const std::byte> from) {
  check(cudaMemcpy(to, from.data(), from.size(), cudaMemcpyHostToDevice), "a copy to the GPU");
  // cudaMemcpy returns when pageable memory is staged, and our streams do not wait for the default one.
  check(cudaStreamSynchronize(nullptr), "a copy to the GPU");
}

void CudaMachine::download(std::span<std::byte> to, const void* from) {
  check(cudaMemcpy(to.data(), from, to.size(), cudaMemcpyDeviceToHost), "a copy from the GPU");
}

void CudaMachine::prepare(std::span<const DeviceLane> lanes, std::size_t calls) {
  const int ranks = lanes.back().rank + 1;
  if (how_.parts && ranks > 1) contexts_ = std::make_unique<GreenContexts>(device_, ranks, how_.shares);
  const bool in_parts = contexts_ != nullptr && !contexts_->empty();
  for (int rank = 0; rank < ranks; ++rank)
    products_.push_back(std::make_unique<MatrixProducts>(
        stored_type(half_), in_parts ? contexts_->multiprocessors()[static_cast<std::size_t>(rank)] : 0));
  lanes_ = std::vector<Lane>(static_cast<std::size_t>(ranks) * kDeviceStreamCount);
  for (const DeviceLane& lane : lanes) settle(lane, in_parts);
  events_.resize(calls);
  for (CallEvents& events : events_) {
    check(cudaEventCreate(&events.start), "an event");
    check(cudaEventCreate(&events.end), "an event");
    if (how_.graph) check(cudaEventCreateWithFlags(&events.done, cudaEventDisableTiming), "an event");
  }
  if (how_.graph) {
    check(cudaStreamCreateWithFlags(&origin_, cudaStreamNonBlocking), "a stream");
    check(cudaEventCreateWithFlags(&forks_, cudaEventDisableTiming), "an event");
  }
  check(cudaDeviceSynchronize(), "the GPU");
}

/// Makes the stream of a lane, and all that belongs to it.
void CudaMachine::settle(DeviceLane of, bool in_parts) {
  Lane& lane = lanes_[lane_of(of.rank, of.stream)];
  MatrixProducts& products = *products_[static_cast<std::size_t>(of.rank)];
  const int priority = priority_of(of.stream);
  if (in_parts)
    lane.stream = contexts_->make_stream(of.rank, priority);
  else
    check(cudaStreamCreateWithPriority(&lane.stream, cudaStreamNonBlocking, priority), "a stream");
  const int own = in_parts ? contexts_->multiprocessors()[static_cast<std::size_t>(of.rank)] : all_multiprocessors_;
  lane.kernels = make_cuda_kernels(half_, products, lane.stream, own);
  lane.ahead.settle();
  if (how_.graph) check(cudaEventCreateWithFlags(&lane.joins, cudaEventDisableTiming), "an event");
  if (of.stream == DeviceStream::kCompute) products.settle(lane.stream);
}

void CudaMachine::begin_call(std::size_t index, int rank, DeviceStream stream, const char* name) {
  nvtxRangePushA(name);
  has_range_ = true;
  if (index == 0 && how_.graph && replays_ == 1) begin_capture();
  call_ = index;
  calls_ = index + 1;
  lane_ = lane_of(rank, stream);
  if (links_ != nullptr)
    links_->begin_call(static_cast<int>(lane_), name);
  else
    watch_.begin(static_cast<int>(lane_), fmt::format("rank {}, {}", rank, name));
  has_started_ = false;
  if (index == 0) ends_ = 0;
  Lane& lane = lanes_[lane_];
  assert(lane.stream != nullptr);
  make_room(kLaunchesOfWork);
  if (captures_ && !std::exchange(lane.in_capture, true)) check(cudaStreamWaitEvent(lane.stream, forks_), "a capture");
}

void CudaMachine::wait_for(std::size_t earlier) {
  if (links_ != nullptr)
    links_->wait_for(earlier);
  else
    watch_.wait_for(earlier);
  require(cudaStreamWaitEvent(lanes_[lane_].stream, captures_ ? events_[earlier].done : events_[earlier].end),
          "a wait for an event");
}

/// Records an event. In a captured graph a moment is a node of its own, which nothing in the graph can wait for.
void CudaMachine::record(cudaEvent_t moment) {
  require(cudaEventRecordWithFlags(moment, lanes_[lane_].stream,
                                   captures_ ? cudaEventRecordExternal : cudaEventRecordDefault),
          "an event");
}

void CudaMachine::record_end(std::size_t call) {
  record(events_[call].end);
  ends_ = call + 1;
}

/// Waits, where the host is far ahead, until the lane has room for some launches. In a capture nothing is launched.
void CudaMachine::make_room(int launches) {
  if (captures_) return;
  RunAhead& ahead = lanes_[lane_].ahead;
  bool is_marked = false;
  try {
    is_marked = ahead.add(lanes_[lane_].stream, launches);
  } catch (const RunError& fault) {
    throw RunError(text_of_fault(fault.what()));
  }
  if (is_marked) wait_until([&ahead] { return ahead.has_room(); });
}

void CudaMachine::start_call() {
  if (!has_started_) record(events_[call_].start);
  has_started_ = true;
}

DeviceKernels& CudaMachine::kernels() {
  start_call();
  make_room(kLaunchesOfWork);
  return *lanes_[lane_].kernels;
}

void CudaMachine::end_call() {
  start_call();
  if (in_group_)
    ends_of_group_.emplace_back(call_, lane_);
  else
    record_end(call_);
  if (captures_) require(cudaEventRecord(events_[call_].done, lanes_[lane_].stream), "an event");
  nvtxRangePop();
  has_range_ = false;
}

std::string CudaMachine::text_of_fault(const std::string& reason) const {
  if (links_ != nullptr) return links_->text_of_fault(reason);
  if (launched_ != nullptr) return reason + ", in the graph of a step: without --cuda-graph it is known where";
  return fmt::format("{}: {}", watch_.under_way(), reason);
}

void CudaMachine::require(cudaError_t error, const char* what) const {
  if (error == cudaSuccess) return;
  try {
    check(error, what);
  } catch (const RunError& fault) {
    throw RunError(text_of_fault(fault.what()));
  }
}

void CudaMachine::join(const DeviceGroups& groups) {
  if (links_ == nullptr) return DeviceMachine::join(groups);
  links_->join(groups);
}

void CudaMachine::exchange(const DeviceExchange& exchange) {
  if (links_ == nullptr) return DeviceMachine::exchange(exchange);
  start_call();
  make_room(kLaunchesOfExchange);
  links_->exchange(exchange, lanes_[lane_].stream, [this](std::size_t call) { return has_ended(call); });
}

void CudaMachine::begin_group() {
  if (links_ == nullptr) return DeviceMachine::begin_group();
  in_group_ = true;
  ends_of_group_.clear();
  links_->begin_group();
}

void CudaMachine::end_group() {
  if (links_ == nullptr) return DeviceMachine::end_group();
  in_group_ = false;
  make_room(kLaunchesOfExchange);
  links_->end_group([this](std::size_t call) { return has_ended(call); });
  for (const auto& [call, lane] : ends_of_group_) {
    lane_ = lane;
    record_end(call);
  }
}

void CudaMachine::begin_capture() {
  captures_ = true;
  check(cudaStreamBeginCapture(origin_, cudaStreamCaptureModeThreadLocal), "a capture");
  check(cudaEventRecord(forks_, origin_), "a capture");
}

void CudaMachine::join_capture() {
  for (Lane& lane : lanes_) {
    if (!std::exchange(lane.in_capture, false)) continue;
    check(cudaEventRecord(lane.joins, lane.stream), "a capture");
    check(cudaStreamWaitEvent(origin_, lane.joins), "a capture");
  }
}

void CudaMachine::end_capture() {
  join_capture();
  captures_ = false;
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(origin_, &graph), "a capture of a step");
  const cudaError_t made = cudaGraphInstantiate(&launched_, graph, 0);
  cudaGraphDestroy(graph);
  check(made, "the graph of a step");
}

bool CudaMachine::has_ended(std::size_t call) const {
  if (call >= ends_) return false;  // its event has the moment of the last replay
  const cudaError_t state = cudaEventQuery(events_[call].end);
  if (state != cudaErrorNotReady) check(state, "a kernel of the replay");
  return state == cudaSuccess;
}

/// Waits by asking, since the device gives no more information once a kernel has failed.
void CudaMachine::wait_until(const std::function<bool()>& is_over) {
  const auto has_ended = [this](std::size_t call) { return this->has_ended(call); };
  if (links_ != nullptr) return links_->wait_until(is_over, has_ended);
  try {
    for (PollPause pause = PollPause::of_device(); !is_over(); pause.pause())
      if (watch_.advance(has_ended)) pause.restart();
  } catch (const RunError& fault) {
    throw RunError(text_of_fault(fault.what()));
  }
}

std::vector<CallTimes> CudaMachine::finish() {
  if (captures_) end_capture();
  if (launched_ != nullptr) check(cudaGraphLaunch(launched_, origin_), "the graph of a step");
  if (links_ != nullptr)
    links_->finish([this](std::size_t call) { return has_ended(call); });
  else if (launched_ == nullptr)
    wait_until([this] { return watch_.is_over(); });
  require(cudaDeviceSynchronize(), "a kernel of the replay");
  watch_.clear();
  ++replays_;
  std::vector<Seconds> starts, ends;
  Seconds first{0};  // the call that was enqueued first need not be the first to begin
  for (std::size_t i = 0; i < calls_; ++i) {
    starts.push_back(time_between(events_.front().start, events_[i].start));
    ends.push_back(time_between(events_.front().start, events_[i].end));
    first = std::min(first, starts.back());
  }
  std::vector<CallTimes> times;
  for (std::size_t i = 0; i < calls_; ++i)
    times.push_back({to_sim_time(starts[i] - first), to_sim_time(std::max(starts[i], ends[i]) - first)});
  return times;
}

}}}  // namespace plumb::executor::cuda
