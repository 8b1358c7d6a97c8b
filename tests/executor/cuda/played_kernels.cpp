// In the place of executor/cuda/cuda_kernels.cu: the bodies of kernels/simt on a played stream.

#include <algorithm>
#include <limits>
#include <memory>

#include "executor/cuda/check_cuda.h"
#include "executor/cuda/cuda_kernels.h"
#include "executor/device/kernels/simt_kernels.h"
#include "executor/transport/transport.h"
#include "tests/executor/cuda/played/played.h"
#include "tests/executor/device/lone_thread.h"
#include "tests/kernels/simt/host_block.h"

namespace plumb::cuda {
namespace {

constexpr int kBlocks = 3;  // fewer than rows, so that blocks take more than one

template <class S>
class PlayedLauncher {
 public:
  PlayedLauncher(MatrixProducts& products, cudaStream_t stream) : products_(&products), stream_(stream) {}

  template <class Body>
  void launch(const Body& body, std::int64_t items, int lanes) {
    if (lanes < 1 || lanes > 1024) throw RunError("a block has 1 to 1024 threads");
    check(played::launch(stream_, "a kernel",
                         [=] {
                           const int blocks = static_cast<int>(std::min<std::int64_t>(items, kBlocks));
                           float shared = std::numeric_limits<float>::quiet_NaN();
                           for (int block = 0; block < blocks; ++block) body(test::LoneThread(block, blocks, shared));
                         }),
          "a kernel's launch");
  }
  template <class Body>
  void launch_elements(const Body& body, std::int64_t elements) {
    launch(body, elements, 1);
  }
  template <class Body>
  void launch_warps(const Body& body) {
    check(played::launch(
              stream_, "a kernel for tensor cores",
              [=] { test::run_warps_on_host(body, static_cast<int>(std::min<std::int64_t>(body.items(), kBlocks))); }),
          "a kernel's launch");
  }
  void copy(void* to, const void* from, std::int64_t bytes) {
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream_), "a copy");
  }
  void forward(S* y, const S* x, const S* weight, const GemmSize& size) {
    products_->forward(y, x, weight, size, stream_);
  }
  void input_grad(S* dx, const S* dy, const S* weight, const GemmSize& size) {
    products_->input_grad(dx, dy, weight, size, stream_);
  }
  void weight_grad(float* dweight, const S* dy, const S* x, const GemmSize& size) {
    products_->weight_grad(dweight, dy, x, size, stream_);
  }
  bool forward_with_bias(S* y, const S* x, const S* weight, const S* bias, const GemmSize& size) {
    return products_->forward_with_bias(y, x, weight, bias, size, stream_);
  }
  bool forward_with_gelu(S* y, S* up, const S* x, const S* weight, const S* bias, const GemmSize& size) {
    return products_->forward_with_gelu(y, up, x, weight, bias, size, stream_);
  }
  const float* weight_grad_with_sums(float* dweight, const S* dy, const S* x, const GemmSize& size) {
    return products_->weight_grad_with_sums(dweight, dy, x, size, stream_);
  }

 private:
  MatrixProducts* products_;
  cudaStream_t stream_;
};

template <class S>
std::unique_ptr<DeviceKernels> made_for(MatrixProducts& products, cudaStream_t stream) {
  return std::make_unique<SimtKernels<S, PlayedLauncher<S>>>(PlayedLauncher<S>(products, stream));
}

}  // namespace

std::unique_ptr<DeviceKernels> make_cuda_kernels(std::optional<HalfFormat> half, MatrixProducts& products,
                                                 cudaStream_t stream, int multiprocessors) {
  if (multiprocessors != played::multiprocessors_of(stream)) throw RunError("kernels for other SMs than the stream's");
  if (!half) return made_for<float>(products, stream);
  if (*half == HalfFormat::kBf16) return made_for<Bf16>(products, stream);
  return made_for<Fp16>(products, stream);
}

}  // namespace plumb::cuda
