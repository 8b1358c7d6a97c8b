#include "executor/machines/cuda/product_epilogue.h"

#include "executor/machines/cuda/check_cuda.h"

namespace plumb { inline namespace executor { namespace cuda {
namespace {

constexpr std::int64_t kStrideElements = 8;
constexpr std::uintptr_t kAddressBytes = 16;

}  // namespace

bool may_take_in(const ProductEpilogue& epilogue, std::int64_t rows, std::int64_t columns) {
  if (epilogue.kind == CUBLASLT_EPILOGUE_BGRADB)
    return columns * static_cast<std::int64_t>(sizeof(float)) <= static_cast<std::int64_t>(kBiasGradientBytes);
  if (epilogue.activated == nullptr) return true;
  return rows % kStrideElements == 0 && reinterpret_cast<std::uintptr_t>(epilogue.activated) % kAddressBytes == 0;
}

void describe(cublasLtMatmulDesc_t operation, const ProductEpilogue& epilogue, std::int64_t rows) {
  const auto set = [operation](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof(value)), "a product's epilogue");
  };
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue.kind);
  if (epilogue.bias != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, epilogue.bias);
  if (epilogue.activated == nullptr) return;
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, epilogue.activated);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, rows);
}

}}}  // namespace plumb::executor::cuda
