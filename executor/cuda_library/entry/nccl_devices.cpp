#include "executor/cuda_library/entry/nccl_devices.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "executor/machines/cuda/check_cuda.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor { namespace cuda {
namespace {

using Moment = std::chrono::steady_clock;
constexpr Seconds kTimeout{30};
constexpr std::int64_t kElementBytes = 4;

std::size_t elements_of(const NcclRound& round) {
  return static_cast<std::size_t>(round.bytes / kElementBytes);
}

}  // namespace

NcclGpus::NcclGpus(int ranks, std::int64_t most_bytes) {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found == cudaErrorNoDevice || found == cudaErrorInsufficientDriver || (found == cudaSuccess && count == 0))
    throw RunError(fmt::format("there is no GPU here that CUDA can use ({})",
                               found == cudaSuccess ? "the driver has none" : cudaGetErrorString(found)));
  check(found, "the GPUs");
  if (ranks > count)
    throw RunError(
        fmt::format("{} ranks were asked for and there are {} GPUs: NCCL refuses two ranks of one process on a "
                    "GPU; leave --ranks away",
                    ranks, count));
  for (int rank = 0; rank < (ranks > 0 ? ranks : count); ++rank) gpus_.push_back(std::make_unique<Gpu>());
  on_all([&](int rank, Gpu& gpu) {
    gpu.device = rank;
    check(cudaStreamCreateWithFlags(&gpu.stream, cudaStreamNonBlocking), "a stream");
    for (float** buffer : {&gpu.from, &gpu.to})
      check(cudaMalloc(reinterpret_cast<void**>(buffer), static_cast<std::size_t>(most_bytes)), "a buffer");
  });
  const NcclId id = port_.make_id();
  on_all([&](int rank, Gpu& gpu) {  // none of the threads has failed, so that all of them come
    gpu.communicator = std::make_unique<NcclCommunicatorHandle>(
        port_, id, rank, this->ranks(), NcclConfig{.blocks = true}, fmt::format("rank {}", rank),
        NcclPatience{.timeout = kTimeout, .stop_if_told = [this] { stop_if_failed(); }});
  });
}

NcclGpus::Gpu::~Gpu() {
  cudaSetDevice(device);
  communicator.reset();  // aborts
  if (stream != nullptr) {
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
  products.reset();
  cudaFree(from);
  cudaFree(to);
}

void NcclGpus::on_all(const std::function<void(int rank, Gpu& gpu)>& work, std::barrier<>* together) {
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < gpus_.size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        const cudaError_t current = cudaSetDevice(static_cast<int>(rank));
        // Even if the device is gone, so that no thread waits for it.
        if (together != nullptr) together->arrive_and_wait();
        check(current, "the GPU");
        work(static_cast<int>(rank), *gpus_[rank]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (failure == nullptr) failure = std::current_exception();
        has_failed_ = true;
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (failure != nullptr) std::rethrow_exception(failure);
}

void NcclGpus::launch(int rank, const Gpu& gpu, const NcclRound& round) const {
  const auto n = static_cast<std::size_t>(std::max(1, ranks())), own = static_cast<std::size_t>(rank);
  const std::size_t count = elements_of(round), each = count / n;
  const NcclFunctions& api = nccl();
  auto* comm = static_cast<ncclComm_t>(gpu.communicator->get());
  float* from = round.in_place ? gpu.to : gpu.from;
  const auto expect = [&](ncclResult_t result) {
    check(result, fmt::format("rank {}, {} of {} bytes", rank, collective_name(round.op), round.bytes));
  };
  const auto exchange = [&](std::size_t to, const float* out, std::size_t source, float* in, std::size_t elements) {
    expect(api.send(out, elements, ncclFloat, static_cast<int>(to), comm, gpu.stream));
    expect(api.receive(in, elements, ncclFloat, static_cast<int>(source), comm, gpu.stream));
  };
  switch (round.op) {
    case CollectiveKind::kAllGather:
      return expect(
          api.all_gather(round.in_place ? gpu.to + own * each : from, gpu.to, each, ncclFloat, comm, gpu.stream));
    case CollectiveKind::kReduceScatter:
      return expect(api.reduce_scatter(from, round.in_place ? gpu.to + own * each : gpu.to, each, ncclFloat, ncclSum,
                                       comm, gpu.stream));
    case CollectiveKind::kBroadcast:
      return expect(api.broadcast(from, gpu.to, count, ncclFloat, 0, comm, gpu.stream));
    case CollectiveKind::kReduce:
      return expect(api.reduce(from, gpu.to, count, ncclFloat, ncclSum, 0, comm, gpu.stream));
    case CollectiveKind::kAllToAll:
      expect(api.group_start());
      for (std::size_t distance = 0; distance < n; ++distance) {
        const std::size_t to = (own + distance) % n, source = (own + n - distance) % n;
        exchange(to, from + to * each, source, gpu.to + source * each, each);
      }
      return expect(api.group_end());
    case CollectiveKind::kShift:
      expect(api.group_start());
      exchange((own + 1) % n, from, (own + n - 1) % n, gpu.to, count);
      return expect(api.group_end());
    default:
      return expect(api.all_reduce(from, gpu.to, count, ncclFloat, ncclSum, comm, gpu.stream));
  }
}

void NcclGpus::stop_if_failed() const {
  if (has_failed_) throw RunError("another GPU of this process has failed");
}

void NcclGpus::wait(const Gpu& gpu) const {
  const auto end = Moment::now() + kTimeout;
  while (true) {
    const cudaError_t state = cudaStreamQuery(gpu.stream);
    if (state == cudaSuccess) return;
    if (state != cudaErrorNotReady) check(state, "NCCL's stream");
    gpu.communicator->poll("it runs");
    stop_if_failed();
    if (Moment::now() > end)
      throw RunError(fmt::format("{}: for {:.0f} s its stream has not come to an end", gpu.communicator->name(),
                                 kTimeout.count()));
  }
}

Seconds NcclGpus::run(const NcclRound& round, int times) {
  std::barrier<> together(std::ssize(gpus_));
  std::vector<Seconds> took(gpus_.size());
  on_all(
      [&](int rank, Gpu& gpu) {
        const auto start = Moment::now();
        for (int time = 0; time < times; ++time) launch(rank, gpu, round);
        wait(gpu);
        took[static_cast<std::size_t>(rank)] = Moment::now() - start;
      },
      &together);
  return std::ranges::max(took);
}

std::vector<OverlapTimes> NcclGpus::overlap(const OverlapWork& work) {
  const NcclRound meeting{.op = CollectiveKind::kAllReduce, .bytes = kElementBytes * ranks()};
  on_all([&](int, Gpu& gpu) {
    if (gpu.products != nullptr && gpu.products->is_of(work.half, work.product_edge)) return;
    gpu.products.reset();
    gpu.products = std::make_unique<ProductLane>(work.half, work.product_edge);
  });
  std::barrier<> together(std::ssize(gpus_));
  std::vector<OverlapTimes> times(gpus_.size());
  on_all(
      [&](int rank, Gpu& gpu) {
        ProductLane& products = *gpu.products;
        products.multiply(work.lead);
        products.let_follow(gpu.stream);
        launch(rank, gpu, meeting);  // all devices begin together
        products.begin(gpu.stream);
        products.multiply(work.products);
        if (work.round) launch(rank, gpu, *work.round);
        products.end(gpu.stream);
        wait(gpu);
        OverlapTimes& own = times[static_cast<std::size_t>(rank)];
        if (work.products > 0) own.products = products.products_time();
        if (work.round) own.collective = products.other_time();
      },
      &together);
  return times;
}

std::int64_t NcclGpus::wrong_values(const NcclRound& round) {
  std::vector<std::int64_t> wrong(gpus_.size(), 0);
  on_all([&](int rank, Gpu& gpu) {
    const std::vector<float> own(elements_of(round), static_cast<float>(rank + 1));
    check(
        cudaMemcpy(round.in_place ? gpu.to : gpu.from, own.data(), own.size() * sizeof(float), cudaMemcpyHostToDevice),
        "a copy to the GPU");
    check(cudaStreamSynchronize(nullptr), "a copy to the GPU");  // pageable memory is staged
  });
  run(round, 1);
  on_all([&](int rank, Gpu& gpu) { wrong[static_cast<std::size_t>(rank)] = wrong_here(rank, gpu, round); });
  std::int64_t all = 0;
  for (const std::int64_t one : wrong) all += one;
  return all;
}

std::int64_t NcclGpus::wrong_here(int rank, const Gpu& gpu, const NcclRound& round) const {
  const auto n = static_cast<std::size_t>(std::max(1, ranks())), own = static_cast<std::size_t>(rank);
  const std::size_t count = elements_of(round), each = count / n;
  std::vector<float> values(count);
  check(cudaMemcpy(values.data(), gpu.to, count * sizeof(float), cudaMemcpyDeviceToHost), "a copy from the GPU");
  const std::size_t of_all = n * (n + 1) / 2;
  std::size_t first = 0, end = count;
  if (round.op == CollectiveKind::kReduce && rank != 0) end = 0;
  if (round.op == CollectiveKind::kReduceScatter) {
    first = round.in_place ? own * each : 0;
    end = first + each;
  }
  std::int64_t wrong = 0;
  for (std::size_t i = first; i < end; ++i) {
    const std::size_t sender = i / std::max<std::size_t>(1, each);
    auto expected = static_cast<float>(of_all);
    if (round.op == CollectiveKind::kAllGather || round.op == CollectiveKind::kAllToAll)
      expected = static_cast<float>(sender + 1);
    if (round.op == CollectiveKind::kBroadcast) expected = 1;
    if (round.op == CollectiveKind::kShift) expected = static_cast<float>((own + n - 1) % n + 1);
    wrong += values[i] == expected ? 0 : 1;
  }
  return wrong;
}

}}}  // namespace plumb::executor::cuda
