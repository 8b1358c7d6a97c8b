#include "tests/executor/machines/host_kernels.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "executor/kernels/simt_kernels.h"
#include "tests/executor/machines/host_product_launcher.h"
#include "tests/executor/training/device/lone_thread.h"
#include "tests/kernels/simt/host_block.h"

namespace plumb::test {
namespace {

/// SimtKernels' launcher on the host: enqueues.
template <class S>
class HostLauncher : public HostProductLauncher<S> {
 public:
  using HostProductLauncher<S>::HostProductLauncher;

  /// Fewer blocks than rows, so that blocks take more than one.
  template <class Body>
  void launch(const Body& body, std::int64_t items, int) {
    this->enqueue([=] {
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
    this->enqueue([=] { run_warps_on_host(body, static_cast<int>(std::min<std::int64_t>(body.items(), 3))); });
  }
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
