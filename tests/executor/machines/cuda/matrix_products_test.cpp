// Compares products with an epilogue, by cuBLASLt as it is documented, with products and kernels of their own.

#include "executor/machines/cuda/matrix_products.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kernels/simt/number.h"
#include "tests/executor/machines/cuda/played_run.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {
namespace {

/// Tensors of one format on the played GPU, which does not treat them as host memory.
template <class S>
class Tensors {
 public:
  Tensors() { REQUIRE(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess); }
  ~Tensors() {
    for (void* memory : memory_) cudaFree(memory);
    cudaStreamDestroy(stream_);
  }
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;

  cudaStream_t stream() const { return stream_; }

  template <class T = S>
  T* random(std::int64_t elements) {
    std::vector<T> values(static_cast<std::size_t>(elements));
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (T& value : values) store(value, uniform(random_));
    void* memory = nullptr;
    REQUIRE(cudaMalloc(&memory, values.size() * sizeof(T)) == cudaSuccess);
    memory_.push_back(memory);
    REQUIRE(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    return static_cast<T*>(memory);
  }

  template <class T>
  std::vector<float> values(const T* of, std::int64_t elements) const {
    REQUIRE(cudaStreamSynchronize(stream_) == cudaSuccess);
    std::vector<T> values(static_cast<std::size_t>(elements));
    REQUIRE(cudaMemcpy(values.data(), of, values.size() * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    std::vector<float> wide;
    for (const T& value : values) wide.push_back(widened(value));
    return wide;
  }

 private:
  cudaStream_t stream_ = nullptr;
  std::vector<void*> memory_;
  std::mt19937 random_{std::random_device{}()};
};

float gelu(float x) {
  return 0.5F * x * (1 + std::tanh(0.79788456F * (x + 0.044715F * x * x * x)));
}

template <class S>
constexpr cudaDataType_t kStored = CUDA_R_32F;
template <>
constexpr cudaDataType_t kStored<Bf16> = CUDA_R_16BF;

float rounded_to(float value, float) {
  return value;
}
float rounded_to(float value, Bf16) {
  Bf16 stored;
  store(stored, value);
  return widened(stored);
}

}  // namespace

TEST_CASE_TEMPLATE("a product takes in a bias: it is added as it is stored, before the only rounding", S, float, Bf16) {
  played::restart({});
  {
    Tensors<S> on;
    cuda::MatrixProducts products(kStored<S>), wide_products(CUDA_R_32F);
    for (const GemmSize size : {GemmSize{7, 5, 3}, GemmSize{16, 24, 8}, GemmSize{1, 33, 65}}) {
      const S *x = on.random(size.m * size.k), *weight = on.random(size.n * size.k), *bias = on.random(size.n + 1) + 1;
      S* y = on.random(size.m * size.n);
      for (int round = 0; round < 2; ++round) {  // the second round uses the chosen algorithm
        REQUIRE(products.forward_with_bias(y, x, weight, bias, size, on.stream()));
        const std::vector<float> with = on.values(y, size.m * size.n), biases = on.values(bias, size.n);
        const std::vector<float> left = on.values(x, size.m * size.k), right = on.values(weight, size.n * size.k);
        for (std::int64_t i = 0; i < size.m; ++i)
          for (std::int64_t j = 0; j < size.n; ++j) {
            double sum = biases[static_cast<std::size_t>(j)];
            for (std::int64_t k = 0; k < size.k; ++k)
              sum += double{left[static_cast<std::size_t>(i * size.k + k)]} *
                     right[static_cast<std::size_t>(j * size.k + k)];
            const float found = with[static_cast<std::size_t>(i * size.n + j)];
            CHECK(found ==
                  doctest::Approx(rounded_to(static_cast<float>(sum), S{})).epsilon(sizeof(S) == 4 ? 1e-5 : 8e-3));
          }
      }
    }
  }
  CHECK(played_faults() == "");
}

TEST_CASE_TEMPLATE("a product takes in GELU and keeps what it is applied to", S, float, Bf16) {
  played::restart({});
  {
    Tensors<S> on;
    cuda::MatrixProducts products(kStored<S>);
    const GemmSize size{9, 16, 6};
    const S *x = on.random(size.m * size.k), *weight = on.random(size.n * size.k), *bias = on.random(size.n);
    S *y = on.random(size.m * size.n), *up = on.random(size.m * size.n), *plain = on.random(size.m * size.n);
    for (const S* added : {bias, static_cast<const S*>(nullptr)}) {
      REQUIRE(products.forward_with_gelu(y, up, x, weight, added, size, on.stream()));
      if (added == nullptr)
        products.forward(plain, x, weight, size, on.stream());
      else
        REQUIRE(products.forward_with_bias(plain, x, weight, added, size, on.stream()));
      const std::vector<float> kept = on.values(up, size.m * size.n), activated = on.values(y, size.m * size.n);
      CHECK(kept == on.values(plain, size.m * size.n));
      for (std::size_t i = 0; i < kept.size(); ++i)
        CHECK(activated[i] == doctest::Approx(gelu(kept[i])).epsilon(sizeof(S) == 4 ? 1e-5 : 2e-2));
    }
  }
  CHECK(played_faults() == "");
}

TEST_CASE("a product sums the rows of what it is given for the gradient of a bias") {
  played::restart({});
  {
    Tensors<Bf16> on;
    cuda::MatrixProducts products(CUDA_R_16BF);
    const GemmSize size{11, 6, 17};  // out, in, rows
    const Bf16 *dy = on.random(size.k * size.m), *x = on.random(size.k * size.n);
    float *dweight = on.random<float>(size.m * size.n), *other = on.random<float>(size.m * size.n);
    REQUIRE(cudaMemcpy(other, dweight, sizeof(float) * 66, cudaMemcpyDeviceToDevice) == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    const float* sums = products.weight_grad_with_sums(dweight, dy, x, size, on.stream());
    REQUIRE(sums != nullptr);
    const std::vector<float> found = on.values(sums, size.m), rows = on.values(dy, size.k * size.m);
    for (std::int64_t c = 0; c < size.m; ++c) {
      double sum = 0;
      for (std::int64_t r = 0; r < size.k; ++r) sum += rows[static_cast<std::size_t>(r * size.m + c)];
      CHECK(found[static_cast<std::size_t>(c)] == doctest::Approx(sum).epsilon(1e-5));
    }
    products.weight_grad(other, dy, x, size, on.stream());
    CHECK(on.values(dweight, 66) == on.values(other, 66));
  }
  CHECK(played_faults() == "");
}

TEST_CASE("what cuBLASLt cannot take in is not asked of it, and nothing is enqueued") {
  played::restart({});
  {
    Tensors<float> on;
    cuda::MatrixProducts products(CUDA_R_32F);
    float* memory = on.random(4096);
    const std::int64_t before = played::counts().products;
    CHECK_FALSE(products.forward_with_gelu(memory, memory + 1024, memory + 2048, memory + 3072, nullptr, {4, 12, 4},
                                           on.stream()));
    CHECK_FALSE(products.forward_with_gelu(memory, memory + 1025, memory + 2048, memory + 3072, nullptr, {4, 16, 4},
                                           on.stream()));
    CHECK(products.weight_grad_with_sums(memory, memory, memory, {1 << 19, 1, 1}, on.stream()) == nullptr);
    CHECK(played::counts().products == before);
    CHECK(products.forward_with_gelu(memory, memory + 1024, memory + 2048, memory + 3072, nullptr, {4, 16, 4},
                                     on.stream()));
    CHECK(played::counts().products == before + 1);
    REQUIRE(cudaStreamSynchronize(on.stream()) == cudaSuccess);
  }
  CHECK(played_faults() == "");
}

TEST_CASE("a block's biases and GELU are launches of their own only where products do not take them in") {
  const auto kernels_of = [](bool exact, bool biased, Recompute rebuild) {
    std::vector<Layer> model = untied_gpt_model(3);
    for (Layer& layer : model)
      if (auto* block = std::get_if<TransformerLayer>(&layer)) {
        block->exact_gelu = exact;
        block->qkv_bias = block->linear_bias = biased;
      }
    RunSpec spec = spec_of(model, make_schedule("1f1b", {.ranks = 1, .microbatches = 2}));
    spec.rebuild = rebuild;
    return play(spec).counts.kernels;
  };
  constexpr std::int64_t kBlocks = 3, kBatches = 2;
  const std::int64_t fused = kernels_of(false, true, Recompute::kNone);
  // GELU by the error function is a kernel of its own, and so is the GELU that a rebuilt activation must equal. A block
  // rebuilds it and two norms, the head rebuilds one.
  CHECK(kernels_of(true, true, Recompute::kNone) - fused == kBlocks * kBatches);
  CHECK(kernels_of(false, true, Recompute::kSelective) - fused == kBlocks * kBatches * (1 + 3) + kBatches);
  // None of the four biases has a kernel in the forward. In the backward the sum of each is added to its gradient, and
  // the optimizer updates biases and matrices in turn.
  CHECK(fused - kernels_of(false, false, Recompute::kNone) == kBlocks * kBatches * 4 + kBlocks * 4);
}

}  // namespace plumb::test
