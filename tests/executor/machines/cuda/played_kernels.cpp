// Replaces executor/machines/cuda/cuda_kernels.cu: the bodies of kernels/simt on a played stream.

#include <algorithm>
#include <limits>
#include <memory>
#include <typeinfo>

#include "executor/kernels/simt_kernels.h"
#include "executor/machines/cuda/check_cuda.h"
#include "executor/machines/cuda/cuda_kernels.h"
#include "executor/machines/cuda/product_launcher.h"
#include "executor/transport/transport.h"
#include "tests/executor/machines/cuda/played/played.h"
#include "tests/executor/training/device/lone_thread.h"
#include "tests/kernels/simt/host_block.h"

namespace plumb { inline namespace executor { namespace cuda {
namespace {

constexpr int kBlocks = 3;  // fewer than there are rows, so that blocks take more than one

template <class S>
class PlayedLauncher : public ProductLauncher<S> {
 public:
  using ProductLauncher<S>::ProductLauncher;

  template <class Body>
  void launch(const Body& body, std::int64_t items, int lanes) {
    if (lanes < 1 || lanes > 1024) throw RunError("a block has 1 to 1024 threads");
    check(test::played::launch(this->stream(), typeid(Body).name(),
                               [=] {
                                 const int blocks = static_cast<int>(std::min<std::int64_t>(items, kBlocks));
                                 float shared = std::numeric_limits<float>::quiet_NaN();
                                 for (int block = 0; block < blocks; ++block)
                                   body(test::LoneThread(block, blocks, shared));
                               }),
          "a kernel's launch");
  }
  template <class Body>
  void launch_elements(const Body& body, std::int64_t elements) {
    launch(body, elements, 1);
  }
  template <class Body>
  void launch_warps(const Body& body) {
    // A block of compute capability 8.0 may have 163 KiB, one of 9.0 and 10.0 227 KiB.
    if (Body::kSharedBytes > 163 << 10) throw RunError("a block has more shared memory than an SM gives it");
    check(test::played::launch(
              this->stream(), typeid(Body).name(),
              [=] { test::run_warps_on_host(body, static_cast<int>(std::min<std::int64_t>(body.items(), kBlocks))); }),
          "a kernel's launch");
  }
};

template <class S>
std::unique_ptr<DeviceKernels> played_kernels_for(MatrixProducts& products, cudaStream_t stream) {
  return std::make_unique<SimtKernels<S, PlayedLauncher<S>>>(PlayedLauncher<S>(products, stream));
}

}  // namespace

std::unique_ptr<DeviceKernels> make_cuda_kernels(std::optional<HalfFormat> half, MatrixProducts& products,
                                                 cudaStream_t stream, int multiprocessors) {
  if (multiprocessors != test::played::multiprocessors_of(stream))
    throw RunError("kernels for other SMs than the stream's");
  if (!half) return played_kernels_for<float>(products, stream);
  if (*half == HalfFormat::kBf16) return played_kernels_for<Bf16>(products, stream);
  return played_kernels_for<Fp16>(products, stream);
}

}}}  // namespace plumb::executor::cuda
