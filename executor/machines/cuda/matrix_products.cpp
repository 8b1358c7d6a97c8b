#include "executor/machines/cuda/matrix_products.h"

#include <algorithm>

#include <fmt/format.h>

#include "executor/machines/cuda/check_cuda.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor { namespace cuda {
namespace {

/// Returns the alignment of an address, 16 bytes at most. The widest loads ask for no more, and the choice of an
/// algorithm shall not depend on where a tensor happens to lie in an arena.
std::uint32_t alignment_of(const void* address) {
  std::uint32_t alignment = 16;
  while (reinterpret_cast<std::uintptr_t>(address) % alignment != 0) alignment /= 2;
  return alignment;
}

cublasLtMatrixLayout_t layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns),
                                   rows),
        "a matrix's layout");
  return made;
}

}  // namespace

cudaDataType_t stored_type(std::optional<HalfFormat> half) {
  if (!half) return CUDA_R_32F;
  return *half == HalfFormat::kBf16 ? CUDA_R_16BF : CUDA_R_16F;
}

MatrixProducts::MatrixProducts(cudaDataType_t stored, int multiprocessors)
    : stored_(stored), multiprocessors_(multiprocessors) {
  check(cublasLtCreate(&handle_), "cuBLASLt");
}

MatrixProducts::~MatrixProducts() {
  for (const auto& [product, made] : prepared_) {
    cublasLtMatmulDescDestroy(made.operation);
    for (cublasLtMatrixLayout_t matrix : {made.left, made.right, made.out}) cublasLtMatrixLayoutDestroy(matrix);
  }
  for (const auto& [stream, memory] : workspaces_) cudaFree(memory);
  cublasLtDestroy(handle_);
}

void MatrixProducts::settle(cudaStream_t stream) {
  void*& workspace = workspaces_[stream];
  if (workspace == nullptr) check(cudaMalloc(&workspace, kProductWorkspaceBytes), "cuBLASLt's workspace");
}

float* MatrixProducts::scratch(cudaStream_t stream) {
  settle(stream);
  return static_cast<float*>(workspaces_[stream]);
}

// Row-major [r, c] is column-major [c, r], so each product is that of the transposed matrices.

MatrixProducts::Product MatrixProducts::forward_product(const GemmSize& size) {
  return {.rows = size.n, .columns = size.m, .inner = size.k, .left_transposed = true};
}

MatrixProducts::Product MatrixProducts::weight_grad_product(const GemmSize& size) {
  return {.rows = size.n, .columns = size.m, .inner = size.k, .right_transposed = true, .adds = true};
}

void MatrixProducts::forward(void* y, const void* x, const void* weight, const GemmSize& size, cudaStream_t stream) {
  multiply(forward_product(size), y, weight, x, stream);
}

bool MatrixProducts::forward_with_bias(void* y, const void* x, const void* weight, const void* bias,
                                       const GemmSize& size, cudaStream_t stream) {
  return multiply(forward_product(size), y, weight, x, stream,
                  {.kind = CUBLASLT_EPILOGUE_BIAS, .bias = const_cast<void*>(bias)});
}

bool MatrixProducts::forward_with_gelu(void* y, void* up, const void* x, const void* weight, const void* bias,
                                       const GemmSize& size, cudaStream_t stream) {
  return multiply(forward_product(size), y, weight, x, stream,
                  {.kind = bias == nullptr ? CUBLASLT_EPILOGUE_GELU_AUX : CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
                   .bias = const_cast<void*>(bias),
                   .activated = up});
}

void MatrixProducts::input_grad(void* dx, const void* dy, const void* weight, const GemmSize& size,
                                cudaStream_t stream) {
  multiply({.rows = size.n, .columns = size.m, .inner = size.k}, dx, weight, dy, stream);
}

void MatrixProducts::weight_grad(float* dweight, const void* dy, const void* x, const GemmSize& size,
                                 cudaStream_t stream) {
  multiply(weight_grad_product(size), dweight, x, dy, stream);
}

const float* MatrixProducts::weight_grad_with_sums(float* dweight, const void* dy, const void* x, const GemmSize& size,
                                                   cudaStream_t stream) {
  settle(stream);
  std::byte* sums = static_cast<std::byte*>(workspaces_[stream]) + kAlgorithmWorkspaceBytes;
  if (!multiply(weight_grad_product(size), dweight, x, dy, stream, {.kind = CUBLASLT_EPILOGUE_BGRADB, .bias = sums}))
    return nullptr;
  return reinterpret_cast<const float*>(sums);
}

/// Returns the prepared product with the addresses of this epilogue.
const MatrixProducts::Prepared& MatrixProducts::prepared(const Product& product, const ProductEpilogue& epilogue) {
  const auto [place, is_new] = prepared_.try_emplace(product);
  Prepared& made = place->second;
  const bool has_epilogue = product.epilogue != CUBLASLT_EPILOGUE_DEFAULT;
  if (!is_new) {
    if (has_epilogue && made.exists) describe(made.operation, epilogue, product.rows);
    return made;
  }
  check(cublasLtMatmulDescCreate(&made.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a product");
  const cublasOperation_t yes = CUBLAS_OP_T;
  if (product.left_transposed)
    check(cublasLtMatmulDescSetAttribute(made.operation, CUBLASLT_MATMUL_DESC_TRANSA, &yes, sizeof(yes)), "a product");
  if (product.right_transposed)
    check(cublasLtMatmulDescSetAttribute(made.operation, CUBLASLT_MATMUL_DESC_TRANSB, &yes, sizeof(yes)), "a product");
  if (multiprocessors_ > 0)
    check(cublasLtMatmulDescSetAttribute(made.operation, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &multiprocessors_,
                                         sizeof(multiprocessors_)),
          "a product");
  if (has_epilogue) describe(made.operation, epilogue, product.rows);
  made.left = product.left_transposed ? layout(stored_, product.inner, product.rows)
                                      : layout(stored_, product.rows, product.inner);
  made.right = product.right_transposed ? layout(stored_, product.columns, product.inner)
                                        : layout(stored_, product.inner, product.columns);
  made.out = layout(product.adds ? CUDA_R_32F : stored_, product.rows, product.columns);

  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "a product");
  const std::size_t workspace = kAlgorithmWorkspaceBytes;
  // "In place" is not allowed, since its order of additions is the order in which blocks end.
  const std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)), "a product");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  // By default cuBLASLt assumes multiples of 256, which parameters behind each other are not.
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product.left_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product.right_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product.out_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, product.out_alignment);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, made.operation, made.left, made.right, made.out,
                                                               made.out, preference, 1, &best, &found);
  cublasLtMatmulPreferenceDestroy(preference);
  // cuBLASLt reports a missing algorithm by one of these errors, or by an empty answer.
  const bool refuses = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
                       status == CUBLAS_STATUS_ARCH_MISMATCH;
  if (has_epilogue && (refuses || (status == CUBLAS_STATUS_SUCCESS && found == 0))) {
    made.exists = false;
    return made;
  }
  check(status, "cuBLASLt's choice of an algorithm");
  if (found == 0)
    throw RunError(fmt::format("cuBLASLt has no algorithm for a product of {} x {} x {}", product.rows, product.columns,
                               product.inner));
  made.algorithm = best.algo;
  return made;
}

bool MatrixProducts::multiply(Product product, void* out, const void* left, const void* right, cudaStream_t stream,
                              const ProductEpilogue& epilogue) {
  if (!may_take_in(epilogue, product.rows, product.columns)) return false;
  product.left_alignment = alignment_of(left);
  product.right_alignment = alignment_of(right);
  product.out_alignment = alignment_of(out);
  // The addresses of an epilogue count for the alignment of the output.
  for (const void* address : {epilogue.bias, epilogue.activated})
    if (address != nullptr) product.out_alignment = std::min(product.out_alignment, alignment_of(address));
  product.epilogue = epilogue.kind;
  const Prepared& made = prepared(product, epilogue);
  if (!made.exists) return false;
  settle(stream);
  void* workspace = workspaces_[stream];
  const float alpha = 1, beta = product.adds ? 1.0F : 0.0F;
  check(cublasLtMatmul(handle_, made.operation, &alpha, left, made.left, right, made.right, &beta, out, made.out, out,
                       made.out, &made.algorithm, workspace, kAlgorithmWorkspaceBytes, stream),
        "a product by cuBLASLt");
  return true;
}

}}}  // namespace plumb::executor::cuda
