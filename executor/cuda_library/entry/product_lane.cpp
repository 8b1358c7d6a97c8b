#include "executor/cuda_library/entry/product_lane.h"

#include <vector>

#include "executor/machines/cuda/check_cuda.h"
#include "executor/measure/operand_values.h"

namespace plumb { inline namespace executor { namespace cuda {

ProductLane::ProductLane(std::optional<HalfFormat> half, std::int64_t edge)
    : half_(half), edge_(edge), products_(stored_type(half)) {
  try {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    for (cudaEvent_t* event : {&begun_, &computed_, &other_over_}) check(cudaEventCreate(event), "an event");
    const std::vector<std::byte> values = operand_values(half, edge * edge * (half ? 2 : 4));
    for (void** matrix : {&left_, &right_, &out_}) {
      check(cudaMalloc(matrix, values.size()), "matrices of products");
      check(cudaMemcpy(*matrix, values.data(), values.size(), cudaMemcpyHostToDevice), "a copy to the GPU");
    }
    check(cudaStreamSynchronize(nullptr), "a copy to the GPU");  // pageable memory is staged
    products_.settle(stream_);
  } catch (...) {
    release();
    throw;
  }
}

ProductLane::~ProductLane() {
  release();
}

void ProductLane::release() {
  if (stream_ != nullptr) {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  for (cudaEvent_t event : {begun_, computed_, other_over_})
    if (event != nullptr) cudaEventDestroy(event);
  for (void* matrix : {left_, right_, out_}) cudaFree(matrix);
}

void ProductLane::multiply(int products) {
  for (int i = 0; i < products; ++i)
    products_.forward(out_, left_, right_, {.m = edge_, .n = edge_, .k = edge_}, stream_);
}

void ProductLane::let_follow(cudaStream_t other) {
  check(cudaEventRecord(computed_, stream_), "an event");
  check(cudaStreamWaitEvent(other, computed_, 0), "a wait");
}

void ProductLane::begin(cudaStream_t other) {
  check(cudaEventRecord(begun_, other), "an event");
  check(cudaStreamWaitEvent(stream_, begun_, 0), "a wait");
}

void ProductLane::end(cudaStream_t other) {
  check(cudaEventRecord(other_over_, other), "an event");
  check(cudaEventRecord(computed_, stream_), "an event");
  check(cudaStreamWaitEvent(other, computed_, 0), "a wait");
}

Seconds ProductLane::products_time() const {
  return time_between(begun_, computed_);
}

Seconds ProductLane::other_time() const {
  return time_between(begun_, other_over_);
}

}}}  // namespace plumb::executor::cuda
