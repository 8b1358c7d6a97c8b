#include "executor/cuda/cuda_kernels.h"
#include "executor/cuda/product_launcher.h"

#include <algorithm>

#include "executor/cuda/check_cuda.h"
#include "executor/device/kernels/simt_kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/warp_block.cuh"

namespace plumb { inline namespace executor { namespace cuda {
namespace {

static_assert(kScratchFloats * sizeof(float) <= kAlgorithmWorkspaceBytes);
constexpr int kElementLanes = 256;
constexpr std::int64_t kBlocksOfMultiprocessor = 16;  // elementwise bodies loop over the remaining elements
constexpr std::int64_t kMostBlocks = std::int64_t{1} << 30;

template <class S>
class CudaLauncher : public ProductLauncher<S> {
 public:
  CudaLauncher(MatrixProducts& products, cudaStream_t stream, int multiprocessors)
      : ProductLauncher<S>(products, stream), multiprocessors_(multiprocessors) {}

  /// Launches nothing for no items, since a grid without blocks is an error.
  template <class Body>
  void launch(const Body& body, std::int64_t items, int lanes) {
    if (items < 1) return;
    const auto blocks = static_cast<int>(std::min(items, kMostBlocks));
    check(kernels::cuda::launch(body, blocks, lanes, this->stream()), "a kernel's launch");
  }
  template <class Body>
  void launch_elements(const Body& body, std::int64_t elements) {
    const std::int64_t blocks =
        std::min((elements + kElementLanes - 1) / kElementLanes, kBlocksOfMultiprocessor * multiprocessors_);
    launch(body, std::max<std::int64_t>(1, blocks), kElementLanes);
  }
  template <class Body>
  void launch_warps(const Body& body) {
    if (body.items() < 1) return;
    const auto blocks = static_cast<int>(std::min(body.items(), kMostBlocks));
    check(kernels::cuda::launch_warps(body, blocks, this->stream()), "a kernel's launch");
  }

 private:
  std::int64_t multiprocessors_;
};

template <class S>
std::unique_ptr<DeviceKernels> made_for(MatrixProducts& products, cudaStream_t stream, int multiprocessors) {
  using Launcher = CudaLauncher<S>;
  return std::make_unique<SimtKernels<S, Launcher>>(Launcher(products, stream, multiprocessors));
}

}  // namespace

std::unique_ptr<DeviceKernels> make_cuda_kernels(std::optional<HalfFormat> half, MatrixProducts& products,
                                                 cudaStream_t stream, int multiprocessors) {
  if (!half) return made_for<float>(products, stream, multiprocessors);
  if (*half == HalfFormat::kBf16) return made_for<Bf16>(products, stream, multiprocessors);
  return made_for<Fp16>(products, stream, multiprocessors);
}

}}}  // namespace plumb::executor::cuda
