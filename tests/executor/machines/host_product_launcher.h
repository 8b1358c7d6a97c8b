#pragma once
// The part of a launcher of kernels (executor/kernels/simt_kernels.h) that needs no body, on the host:
// copies, scratch, and products by OpenBLAS.

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "executor/kernels/simt_kernels.h"
#include "tests/executor/machines/host_kernels.h"

namespace plumb::test {

/// Multiplies tensors that are stored as S. It enqueues all that it does.
template <class S>
class HostProductLauncher {
 public:
  explicit HostProductLauncher(HostEnqueue enqueue)
      : enqueue_(std::move(enqueue)), products_(std::make_shared<Products>()) {}

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

 protected:
  void enqueue(std::function<void()> work) { enqueue_(std::move(work)); }

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

}  // namespace plumb::test
