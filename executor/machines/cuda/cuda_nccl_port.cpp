#include "executor/machines/cuda/cuda_nccl_port.h"

#include <cstring>

#include "executor/machines/cuda/check_cuda.h"

namespace plumb { inline namespace executor { namespace cuda {
namespace {

ncclComm_t comm_of(NcclPort::Communicator communicator) {
  return static_cast<ncclComm_t>(communicator);
}
cudaStream_t stream_of(NcclPort::Stream stream) {
  return static_cast<cudaStream_t>(stream);
}
cudaEvent_t event_of(NcclPort::Event event) {
  return static_cast<cudaEvent_t>(event);
}

ncclDataType_t type_of(NcclElement element) {
  switch (element) {
    case NcclElement::kByte:
      return ncclUint8;
    case NcclElement::kFp32:
      return ncclFloat;
    case NcclElement::kFp16:
      return ncclHalf;
    case NcclElement::kBf16:
      return ncclBfloat16;
  }
  return ncclUint8;
}

std::size_t count_of(const NcclPort::Call& call) {
  return static_cast<std::size_t>(call.elements);
}

void sum_with(decltype(NcclFunctions::all_reduce) collective, const NcclPort::Call& call) {
  check(collective(call.from, call.to, count_of(call), type_of(call.element), ncclSum, comm_of(call.communicator),
                   stream_of(call.stream)),
        "NCCL");
}

}  // namespace

NcclId CudaNcclPort::make_id() {
  ncclUniqueId own{};
  check(nccl().get_unique_id(&own), "NCCL's id");
  NcclId id;
  static_assert(sizeof id.bytes == sizeof own.internal);
  std::memcpy(id.bytes.data(), own.internal, sizeof own.internal);
  return id;
}

NcclPort::Communicator CudaNcclPort::begin_communicator(const NcclId& id, int member, int members,
                                                        const NcclConfig& how) {
  ncclUniqueId same{};
  std::memcpy(same.internal, id.bytes.data(), sizeof same.internal);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = how.blocks ? 1 : 0;
  if (how.most_blocks > 0) config.maxCTAs = how.most_blocks;
  ncclComm_t comm = nullptr;
  const ncclResult_t begun = nccl().comm_init_rank(&comm, members, same, member, &config);
  if (begun != ncclSuccess && begun != ncclInProgress && comm != nullptr) nccl().comm_abort(comm);
  check(begun, "NCCL");
  return comm;
}

bool CudaNcclPort::is_settled(Communicator communicator) {
  ncclResult_t state = ncclSuccess;
  check(nccl().comm_get_async_error(comm_of(communicator), &state), "NCCL");
  check(state, "NCCL");
  return state == ncclSuccess;
}

void CudaNcclPort::finalize(Communicator communicator) {
  check(nccl().comm_finalize(comm_of(communicator)), "NCCL");
}

void CudaNcclPort::destroy(Communicator communicator) {
  check(nccl().comm_destroy(comm_of(communicator)), "NCCL");
}

void CudaNcclPort::abort(std::span<const Communicator> communicators) noexcept {
  nccl().group_start();
  for (const Communicator communicator : communicators) nccl().comm_abort(comm_of(communicator));
  nccl().group_end();
}

std::int64_t CudaNcclPort::free_bytes() {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "the GPU's memory");
  return static_cast<std::int64_t>(free);
}

void CudaNcclPort::group_start() {
  check(nccl().group_start(), "NCCL");
}

void CudaNcclPort::group_end() {
  check(nccl().group_end(), "NCCL");
}

void CudaNcclPort::send(const Call& call) {
  check(nccl().send(call.from, count_of(call), type_of(call.element), call.peer, comm_of(call.communicator),
                    stream_of(call.stream)),
        "NCCL");
}

void CudaNcclPort::receive(const Call& call) {
  check(nccl().receive(call.to, count_of(call), type_of(call.element), call.peer, comm_of(call.communicator),
                       stream_of(call.stream)),
        "NCCL");
}

void CudaNcclPort::broadcast(const Call& call) {
  check(nccl().broadcast(call.from, call.to, count_of(call), type_of(call.element), call.peer,
                         comm_of(call.communicator), stream_of(call.stream)),
        "NCCL");
}

void CudaNcclPort::reduce(const Call& call) {
  check(nccl().reduce(call.from, call.to, count_of(call), type_of(call.element), ncclSum, call.peer,
                      comm_of(call.communicator), stream_of(call.stream)),
        "NCCL");
}

void CudaNcclPort::all_gather(const Call& call) {
  check(nccl().all_gather(call.from, call.to, count_of(call), type_of(call.element), comm_of(call.communicator),
                          stream_of(call.stream)),
        "NCCL");
}

void CudaNcclPort::reduce_scatter(const Call& call) {
  sum_with(nccl().reduce_scatter, call);
}

void CudaNcclPort::all_reduce(const Call& call) {
  sum_with(nccl().all_reduce, call);
}

NcclPort::Stream CudaNcclPort::make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  return stream;
}

void CudaNcclPort::destroy_stream(Stream stream) noexcept {
  cudaStreamDestroy(stream_of(stream));
}

NcclPort::Event CudaNcclPort::make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
  return event;
}

void CudaNcclPort::destroy_event(Event event) noexcept {
  cudaEventDestroy(event_of(event));
}

void CudaNcclPort::record(Event event, Stream stream) {
  check(cudaEventRecord(event_of(event), stream_of(stream)), "an event");
}

void CudaNcclPort::wait(Stream stream, Event event) {
  check(cudaStreamWaitEvent(stream_of(stream), event_of(event), 0), "a wait");
}

bool CudaNcclPort::has_ended(Event event) {
  const cudaError_t state = cudaEventQuery(event_of(event));
  if (state == cudaErrorNotReady) return false;
  check(state, "a kernel");
  return true;
}

}}}  // namespace plumb::executor::cuda
