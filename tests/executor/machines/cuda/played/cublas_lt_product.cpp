// The product that cublasLtMatmul() is documented to compute, with the epilogues of language models.

#include <cblas.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/simt/number.h"
#include "tests/executor/machines/cuda/played/cublas_lt.h"

namespace plumb::test::played {
namespace {

std::size_t index_of(const MatrixLayout& layout, std::int64_t row, std::int64_t column) {
  return static_cast<std::size_t>(column * layout.stride + row);
}

float read(const void* values, cudaDataType_t type, std::size_t at) {
  if (type == CUDA_R_16BF) return widened(static_cast<const Bf16*>(values)[at]);
  if (type == CUDA_R_16F) return widened(static_cast<const Fp16*>(values)[at]);
  return static_cast<const float*>(values)[at];
}

void write(void* values, cudaDataType_t type, std::size_t at, float value) {
  if (type == CUDA_R_16BF) return store(static_cast<Bf16*>(values)[at], value);
  if (type == CUDA_R_16F) return store(static_cast<Fp16*>(values)[at], value);
  static_cast<float*>(values)[at] = value;
}

std::vector<float> wide(const void* values, const MatrixLayout& layout) {
  std::vector<float> all(static_cast<std::size_t>(layout.rows * layout.columns));
  for (std::int64_t column = 0; column < layout.columns; ++column)
    for (std::int64_t row = 0; row < layout.rows; ++row)
      all[static_cast<std::size_t>(column * layout.rows + row)] =
          read(values, layout.type, index_of(layout, row, column));
  return all;
}

constexpr float kRoot = 0.7978845608028654F, kCube = 0.044715F;  // for GELU by tanh, which is cuBLASLt's

float tanh_gelu(float x) {
  return 0.5F * x * (1 + std::tanh(kRoot * (x + kCube * x * x * x)));
}
float gelu_slope(float x) {
  const float tanh = std::tanh(kRoot * (x + kCube * x * x * x));
  return 0.5F * (1 + tanh) + 0.5F * x * (1 - tanh * tanh) * kRoot * (1 + 3 * kCube * x * x);
}

bool has_bits(cublasLtEpilogue_t epilogue, int bits) {
  return (static_cast<int>(epilogue) & bits) == bits;
}

cudaDataType_t given_or(std::int32_t given, cudaDataType_t otherwise) {
  return given < 0 ? otherwise : static_cast<cudaDataType_t>(given);
}

/// Computes the gradient of a bias from A or B: sums of the multiplied matrix over the inner dimension.
void sum_inner(const Matmul& product, const std::vector<float>& values, const MatrixLayout& layout, bool transposed,
               bool is_left) {
  const std::int64_t length = is_left ? product.out.rows : product.out.columns;
  const bool by_columns = is_left == transposed;  // true: the inner dimension runs along the rows of the stored matrix
  const std::int64_t inner = by_columns ? layout.rows : layout.columns;
  for (std::int64_t i = 0; i < length; ++i) {
    float sum = 0;
    for (std::int64_t k = 0; k < inner; ++k)
      sum += values[static_cast<std::size_t>(by_columns ? i * layout.rows + k : k * layout.rows + i)];
    write(product.operation.bias, given_or(product.operation.bias_type, product.out.type), static_cast<std::size_t>(i),
          sum);
  }
}

}  // namespace

std::int64_t element_bytes(cudaDataType_t type) {
  return type == CUDA_R_32F ? 4 : 2;
}

std::int64_t MatrixLayout::bytes() const {
  return rows == 0 || columns == 0 ? 0 : ((columns - 1) * stride + rows) * element_bytes(type);
}

void multiply(const Matmul& product) {
  const MatmulOperation& operation = product.operation;
  const bool left_turned = operation.left == CUBLAS_OP_T, right_turned = operation.right == CUBLAS_OP_T;
  const std::int64_t m = product.out.rows, n = product.out.columns;
  const std::int64_t inner = left_turned ? product.left.rows : product.left.columns;
  const std::vector<float> left = wide(product.left_values, product.left);
  const std::vector<float> right = wide(product.right_values, product.right);
  std::vector<float> sums(static_cast<std::size_t>(m * n), 0);
  if (product.beta != 0) sums = wide(product.in_values, product.in);
  cblas_sgemm(CblasColMajor, left_turned ? CblasTrans : CblasNoTrans, right_turned ? CblasTrans : CblasNoTrans,
              static_cast<blasint>(m), static_cast<blasint>(n), static_cast<blasint>(inner), product.alpha, left.data(),
              static_cast<blasint>(product.left.rows), right.data(), static_cast<blasint>(product.right.rows),
              product.beta, sums.data(), static_cast<blasint>(m));
  const cublasLtEpilogue_t epilogue = operation.epilogue;
  const cudaDataType_t bias_type = given_or(operation.bias_type, product.out.type);
  const cudaDataType_t aux_type = given_or(operation.aux_type, product.out.type);
  std::vector<float> bias_gradient(static_cast<std::size_t>(m), 0);
  for (std::int64_t column = 0; column < n; ++column)
    for (std::int64_t row = 0; row < m; ++row) {
      float value = sums[static_cast<std::size_t>(column * m + row)];
      const auto aux = static_cast<std::size_t>(column * operation.aux_stride + row);
      if (has_bits(epilogue, CUBLASLT_EPILOGUE_BIAS))
        value += read(operation.bias, bias_type, static_cast<std::size_t>(row));
      if (has_bits(epilogue, CUBLASLT_EPILOGUE_GELU_AUX)) write(operation.aux, aux_type, aux, value);
      if (has_bits(epilogue, CUBLASLT_EPILOGUE_GELU)) value = tanh_gelu(value);
      if (has_bits(epilogue, CUBLASLT_EPILOGUE_DGELU)) value *= gelu_slope(read(operation.aux, aux_type, aux));
      bias_gradient[static_cast<std::size_t>(row)] += value;
      write(product.out_values, product.out.type, index_of(product.out, row, column), value);
    }
  if (has_bits(epilogue, CUBLASLT_EPILOGUE_DGELU_BGRAD))
    for (std::int64_t row = 0; row < m; ++row)
      write(operation.bias, bias_type, static_cast<std::size_t>(row), bias_gradient[static_cast<std::size_t>(row)]);
  if (has_bits(epilogue, CUBLASLT_EPILOGUE_BGRADA)) sum_inner(product, left, product.left, left_turned, true);
  if (has_bits(epilogue, CUBLASLT_EPILOGUE_BGRADB)) sum_inner(product, right, product.right, right_turned, false);
}

}  // namespace plumb::test::played
