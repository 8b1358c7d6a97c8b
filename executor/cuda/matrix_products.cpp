#include "executor/cuda/matrix_products.h"

#include <fmt/format.h>

#include "executor/cuda/check_cuda.h"
#include "executor/transport/transport.h"

namespace plumb::cuda {
namespace {

/// Of 16 bytes at most: the widest loads ask for no more, and the choice of an algorithm shall not depend on where in
/// an arena a tensor happens to lie.
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

// Row-major [r, c] is column-major [c, r]: each product is that of the transposed matrices.

void MatrixProducts::forward(void* y, const void* x, const void* weight, const GemmSize& size, cudaStream_t stream) {
  multiply({.rows = size.n, .columns = size.m, .inner = size.k, .left_transposed = true}, y, weight, x, stream);
}

void MatrixProducts::input_grad(void* dx, const void* dy, const void* weight, const GemmSize& size,
                                cudaStream_t stream) {
  multiply({.rows = size.n, .columns = size.m, .inner = size.k}, dx, weight, dy, stream);
}

void MatrixProducts::weight_grad(float* dweight, const void* dy, const void* x, const GemmSize& size,
                                 cudaStream_t stream) {
  multiply({.rows = size.n, .columns = size.m, .inner = size.k, .right_transposed = true, .adds = true}, dweight, x, dy,
           stream);
}

const MatrixProducts::Prepared& MatrixProducts::prepared(const Product& product) {
  const auto [place, is_new] = prepared_.try_emplace(product);
  Prepared& made = place->second;
  if (!is_new) return made;
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
  made.left = product.left_transposed ? layout(stored_, product.inner, product.rows)
                                      : layout(stored_, product.rows, product.inner);
  made.right = product.right_transposed ? layout(stored_, product.columns, product.inner)
                                        : layout(stored_, product.inner, product.columns);
  made.out = layout(product.adds ? CUDA_R_32F : stored_, product.rows, product.columns);

  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "a product");
  const std::size_t workspace = kProductWorkspaceBytes;
  // Not "in place", whose order of additions is that of the blocks' ends.
  const std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)), "a product");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  // Otherwise multiples of 256 are taken for granted, which parameters behind each other are not.
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product.left_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product.right_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product.out_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, product.out_alignment);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, made.operation, made.left, made.right, made.out,
                                                               made.out, preference, 1, &best, &found);
  cublasLtMatmulPreferenceDestroy(preference);
  check(status, "cuBLASLt's choice of an algorithm");
  if (found == 0)
    throw RunError(fmt::format("cuBLASLt has no algorithm for a product of {} x {} x {}", product.rows, product.columns,
                               product.inner));
  made.algorithm = best.algo;
  return made;
}

void MatrixProducts::multiply(Product product, void* out, const void* left, const void* right, cudaStream_t stream) {
  product.left_alignment = alignment_of(left);
  product.right_alignment = alignment_of(right);
  product.out_alignment = alignment_of(out);
  const Prepared& made = prepared(product);
  settle(stream);
  void* workspace = workspaces_[stream];
  const float alpha = 1, beta = product.adds ? 1.0F : 0.0F;
  check(cublasLtMatmul(handle_, made.operation, &alpha, left, made.left, right, made.right, &beta, out, made.out, out,
                       made.out, &made.algorithm, workspace, kProductWorkspaceBytes, stream),
        "a product by cuBLASLt");
}

}  // namespace plumb::cuda
