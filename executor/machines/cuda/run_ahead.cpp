#include "executor/machines/cuda/run_ahead.h"

#include <utility>

#include "executor/machines/cuda/check_cuda.h"

namespace plumb { inline namespace executor { namespace cuda {

RunAhead::~RunAhead() {
  for (cudaEvent_t mark : marks_)
    if (mark != nullptr) cudaEventDestroy(mark);
}

void RunAhead::settle() {
  for (cudaEvent_t& mark : marks_) check(cudaEventCreateWithFlags(&mark, cudaEventDisableTiming), "an event");
}

bool RunAhead::add(cudaStream_t stream, int launches) {
  const bool marks = since_ >= kOfMark;
  if (marks) {
    check(cudaEventRecord(marks_.front(), stream), "an event");
    std::swap(marks_.front(), marks_.back());
    since_ = 0;
  }
  since_ += launches;
  return marks;
}

bool RunAhead::has_room() const {
  const cudaError_t state = cudaEventQuery(marks_.front());  // an event that was never recorded is over
  if (state != cudaErrorNotReady) check(state, "a kernel");
  return state == cudaSuccess;
}

}}}  // namespace plumb::executor::cuda
