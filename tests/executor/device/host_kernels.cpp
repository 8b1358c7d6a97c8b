#include "tests/executor/device/host_kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "executor/device/kernels/simt_kernels.h"
#include "tests/executor/device/lone_thread.h"
#include "tests/kernels/simt/host_block.h"

namespace plumb::test {
namespace {

/// SimtKernels' launcher on the host: enqueues.
template <class S>
class HostLauncher {
 public:
  explicit HostLauncher(HostEnqueue enqueue) : enqueue_(std::move(enqueue)), products_(std::make_shared<Products>()) {}

  /// Fewer blocks than rows, so that blocks take more than one.
  template <class Body>
  void launch(const Body& body, std::int64_t items, int) {
    enqueue_([=] {
      const int blocks = static_cast<int>(std::min<std::int64_t>(items, 3));
      float shared = std::numeric_limits<float>::quiet_NaN();
      for (int block = 0; block < blocks; ++block) body(LoneThread(block, blocks, shared));
    });
  }
  template <class Body>
  void launch_elements(const Body& body, std::int64_t elements) {
    launch(body, elements, 1);
  }
  template <class Body>
  void launch_warps(const Body& body) {
    enqueue_([=] { run_warps_on_host(body, static_cast<int>(std::min<std::int64_t>(body.items(), 3))); });
  }
  void copy(void* to, const void* from, std::int64_t bytes) {
    enqueue_([=] { std::memcpy(to, from, static_cast<std::size_t>(bytes)); });
  }
  float* scratch() {
    if (scratch_ == nullptr) scratch_ = std::make_shared_for_overwrite<float[]>(kScratchFloats);
    return scratch_.get();
  }
  void forward(S* y, const S* x, const S* weight, const GemmSize& size) {
    enqueue_([=, products = products_] { products->forward(y, x, weight, size); });
  }
  void input_grad(S* dx, const S* dy, const S* weight, const GemmSize& size) {
    enqueue_([=, products = products_] { products->input_grad(dx, dy, weight, size); });
  }
  void weight_grad(float* dweight, const S* dy, const S* x, const GemmSize& size) {
    enqueue_([=, products = products_] { products->weight_grad(dweight, dy, x, size); });
  }

 private:
  /// Products of stored matrices, in fp32.
  struct Products {
    void forward(S* y, const S* x, const S* weight, const GemmSize& z) {
      linear_forward(room(out, z.m * z.n), wide(left, x, z.m * z.k), wide(right, weight, z.n * z.k), z);
      narrow_to(y);
    }
    void input_grad(S* dx, const S* dy, const S* weight, const GemmSize& z) {
      linear_input_grad(room(out, z.m * z.n), wide(left, dy, z.m * z.k), wide(right, weight, z.k * z.n), z);
      narrow_to(dx);
    }
    void weight_grad(float* dweight, const S* dy, const S* x, const GemmSize& z) {
      linear_weight_grad(dweight, wide(left, dy, z.k * z.m), wide(right, x, z.k * z.n), z);
    }

    static float* room(std::vector<float>& buffer, std::int64_t elements) {
      buffer.resize(static_cast<std::size_t>(elements));
      return buffer.data();
    }
    static const float* wide(std::vector<float>& buffer, const S* from, std::int64_t elements) {
      buffer.resize(static_cast<std::size_t>(elements));
      for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = widened(from[i]);
      return buffer.data();
    }
    void narrow_to(S* to) const {
      for (std::size_t i = 0; i < out.size(); ++i) store(to[i], out[i]);
    }

    std::vector<float> out, left, right;
  };

  HostEnqueue enqueue_;
  std::shared_ptr<Products> products_;
  std::shared_ptr<float[]> scratch_;
};

template <class S>
std::unique_ptr<DeviceKernels> host_kernels_for(HostEnqueue enqueue) {
  return std::make_unique<SimtKernels<S, HostLauncher<S>>>(HostLauncher<S>(std::move(enqueue)));
}

}  // namespace

std::unique_ptr<DeviceKernels> make_host_kernels(std::optional<HalfFormat> half, HostEnqueue enqueue) {
  if (!half) return host_kernels_for<float>(std::move(enqueue));
  if (*half == HalfFormat::kBf16) return host_kernels_for<Bf16>(std::move(enqueue));
  return host_kernels_for<Fp16>(std::move(enqueue));
}

}  // namespace plumb::test
