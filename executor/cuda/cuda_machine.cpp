#include "executor/cuda/cuda_machine.h"

#include <utility>

#include "executor/cuda/check_cuda.h"
#include "executor/cuda/cuda_kernels.h"

namespace plumb::cuda {
namespace {

cudaDataType_t data_type(std::optional<HalfFormat> half) {
  if (!half) return CUDA_R_32F;
  return *half == HalfFormat::kBf16 ? CUDA_R_16BF : CUDA_R_16F;
}

SimTime between(cudaEvent_t from, cudaEvent_t to) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, from, to), "the time between two events");
  return to_sim_time(Seconds{1e-3 * static_cast<double>(milliseconds)});
}

}  // namespace

CudaMachine::CudaMachine(int device, std::optional<HalfFormat> half) : half_(half) {
  check(cudaSetDevice(device), "the GPU");
  check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device), "the GPU");
  products_ = std::make_unique<MatrixProducts>(data_type(half));
}

CudaMachine::~CudaMachine() {
  cudaDeviceSynchronize();
  for (const CallEvents& events : events_) {
    cudaEventDestroy(events.start);
    cudaEventDestroy(events.end);
  }
  for (const Lane& lane : lanes_) cudaStreamDestroy(lane.stream);
  for (void* memory : memory_) cudaFree(memory);
  for (void* memory : host_memory_) cudaFreeHost(memory);
}

std::int64_t CudaMachine::free_bytes() const {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "the GPU's memory");
  return static_cast<std::int64_t>(free);
}

std::byte* CudaMachine::allocate(std::int64_t bytes) {
  void* memory = nullptr;
  const auto size = static_cast<std::size_t>(bytes);
  check(cudaMalloc(&memory, size), "memory of the GPU");
  memory_.push_back(memory);
  check(cudaMemset(memory, 0, size), "memory of the GPU");
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
}

void CudaMachine::download(std::span<std::byte> to, const void* from) {
  check(cudaMemcpy(to.data(), from, to.size(), cudaMemcpyDeviceToHost), "a copy from the GPU");
}

void CudaMachine::prepare(int ranks, std::size_t calls) {
  lanes_.resize(static_cast<std::size_t>(ranks) * kDeviceStreamCount);
  for (Lane& lane : lanes_) {
    check(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking), "a stream");
    lane.kernels = make_cuda_kernels(half_, *products_, lane.stream, multiprocessors_);
  }
  events_.resize(calls);
  for (CallEvents& events : events_) {
    check(cudaEventCreate(&events.start), "an event");
    check(cudaEventCreate(&events.end), "an event");
  }
  check(cudaDeviceSynchronize(), "the GPU");
}

void CudaMachine::begin_call(std::size_t index, int rank, DeviceStream stream) {
  call_ = index;
  calls_ = index + 1;
  lane_ = static_cast<std::size_t>(rank) * kDeviceStreamCount + static_cast<std::size_t>(stream);
  has_started_ = false;
}

void CudaMachine::wait_for(std::size_t earlier) {
  check(cudaStreamWaitEvent(lanes_[lane_].stream, events_[earlier].end), "a wait for an event");
}

void CudaMachine::start_call() {
  if (!has_started_) check(cudaEventRecord(events_[call_].start, lanes_[lane_].stream), "an event");
  has_started_ = true;
}

DeviceKernels& CudaMachine::kernels() {
  start_call();
  return *lanes_[lane_].kernels;
}

void CudaMachine::end_call() {
  start_call();
  check(cudaEventRecord(events_[call_].end, lanes_[lane_].stream), "an event");
}

std::vector<CallTimes> CudaMachine::finish() {
  check(cudaDeviceSynchronize(), "a kernel of the replay");
  std::vector<CallTimes> times;
  const std::size_t made = std::exchange(calls_, 0);
  for (std::size_t i = 0; i < made; ++i)
    times.push_back({between(events_.front().start, events_[i].start), between(events_.front().start, events_[i].end)});
  return times;
}

}  // namespace plumb::cuda
