#include "executor/machines/cuda/cuda_kernels.h"
#include "executor/machines/cuda/product_launcher.h"

#include "executor/kernels/simt_kernels.h"
#include "executor/machines/cuda/check_cuda.h"
#include "executor/machines/cuda/launch_size.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/warp_block.cuh"

namespace plumb { inline namespace executor { namespace cuda {
namespace {

static_assert(kScratchFloats * sizeof(float) <= kAlgorithmWorkspaceBytes);

template <class S>
class CudaLauncher : public ProductLauncher<S> {
 public:
  CudaLauncher(MatrixProducts& products, cudaStream_t stream, int multiprocessors)
      : ProductLauncher<S>(products, stream), multiprocessors_(multiprocessors) {}

  /// Launches nothing for no items, since a grid without blocks is an error.
  template <class Body>
  void launch(const Body& body, std::int64_t items, int lanes) {
    if (items < 1) return;
    check(kernels::cuda::launch(body, blocks_of_items(items), lanes, this->stream()), "a kernel's launch");
  }
  template <class Body>
  void launch_elements(const Body& body, std::int64_t elements) {
    launch(body, blocks_of_elements(elements, multiprocessors_), kElementLanes);
  }
  template <class Body>
  void launch_warps(const Body& body) {
    if (body.items() < 1) return;
    check(kernels::cuda::launch_warps(body, blocks_of_items(body.items()), this->stream()), "a kernel's launch");
  }

 private:
  int multiprocessors_;
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
