#pragma once
// The three products of a linear layer, by OpenBLAS. Matrices are row-major and dense; weights are [out, in].
// KernelKind kGemm with count 1: `size` is the {m, n, k} of the call's shape, and each function one GemmForm.

#include <cstdint>
#include <optional>
#include <string>

namespace plumb { inline namespace kernels {

struct GemmSize {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// Elements from one row of x (or dx) to the next, and from one row of y (or dy) to the next. They serve matrices that
/// are columns of wider ones.
struct GemmStrides {
  std::int64_t x = 0;
  std::int64_t y = 0;
};

/// y = x W^T. x: [m = T, k = in], weight: [n = out, k = in], y: [m = T, n = out]. GemmForm::kForward.
void linear_forward(float* y, const float* x, const float* weight, const GemmSize& size);
void linear_forward(float* y, const float* x, const float* weight, const GemmSize& size, const GemmStrides& strides);

/// dx = dy W. dy: [m = T, k = out], weight: [k = out, n = in], dx: [m = T, n = in]. GemmForm::kInputGrad.
void linear_input_grad(float* dx, const float* dy, const float* weight, const GemmSize& size);
void linear_input_grad(float* dx, const float* dy, const float* weight, const GemmSize& size,
                       const GemmStrides& strides);

/// dW += dy^T x. dy: [k = T, m = out], x: [k = T, n = in], dweight: [m = out, n = in]. GemmForm::kWeightGrad.
void linear_weight_grad(float* dweight, const float* dy, const float* x, const GemmSize& size);
void linear_weight_grad(float* dweight, const float* dy, const float* x, const GemmSize& size,
                        const GemmStrides& strides);

/// Makes every product run on the thread that calls it. The stages run in parallel instead, and results stay
/// deterministic. It must be called before threads start.
void use_one_blas_thread();

/// Returns the processor that OpenBLAS took this one for, e.g. "SkylakeX". OpenBLAS takes a processor that it does not
/// know (newer than the library) for "Prescott", and then runs at a quarter of the speed.
std::string blas_core();

/// Returns a value of the environment variable OPENBLAS_CORETYPE that serves this processor better than what
/// blas_core() says, or nothing. OpenBLAS reads it when it is opened, which the process does once.
std::optional<std::string> better_blas_core();

}}  // namespace plumb::kernels
