#pragma once
// The state of the played cuBLASLt's opaque handles, and the product itself.

#include <cublasLt.h>

#include <cstdint>

namespace plumb::test::played {

/// A layout in column-major order, the only one that is played.
struct MatrixLayout {
  cudaDataType_t type = CUDA_R_32F;
  std::int64_t rows = 0, columns = 0, stride = 0;

  std::int64_t bytes() const;  ///< bytes from the first element to the end of the last
};

struct MatmulOperation {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
  cublasOperation_t left = CUBLAS_OP_N, right = CUBLAS_OP_N;
  std::int32_t multiprocessors = 0;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  std::int32_t bias_type = -1;  // a cudaDataType_t; -1: the type of D
  void* aux = nullptr;
  std::int64_t aux_stride = 0;
  std::int32_t aux_type = -1;
};

struct MatmulPreference {
  std::uint64_t workspace_bytes = 0;
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t alignment[4] = {256, 256, 256, 256};  // alignments of A, B, C and D
};

struct Matmul {
  MatmulOperation operation;
  MatrixLayout left, right, in, out;
  const void* left_values = nullptr;
  const void* right_values = nullptr;
  const void* in_values = nullptr;
  void* out_values = nullptr;
  float alpha = 1, beta = 0;
};

std::int64_t element_bytes(cudaDataType_t type);

/// Computes D = epilogue(alpha op(A) op(B) + beta C), with sums in fp32.
void multiply(const Matmul& product);

}  // namespace plumb::test::played
