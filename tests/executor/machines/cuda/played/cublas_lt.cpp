// cuBLASLt's functions. An algorithm carries the product that it was chosen for; a fault is noted if it is used for
// another product, with pointers of less alignment, or with a workspace that is too small.

#include "tests/executor/machines/cuda/played/cublas_lt.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "tests/executor/machines/cuda/played/state.h"

using namespace plumb::test::played;

struct cublasLtContext {};

namespace {

constexpr std::uint64_t kWorkspace = 1 << 16;  // bytes for algorithms that use one

template <class Mine, class Opaque>
Mine& mine(Opaque* handle) {
  return *reinterpret_cast<Mine*>(handle);
}

template <class Mine, class Opaque>
cublasStatus_t make(const char* function, const char* kind, Opaque** handle, Mine value) {
  const Call call(function);
  if (call.error() != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = reinterpret_cast<Opaque*>(new Mine(value));
  ++call->open[kind];
  return CUBLAS_STATUS_SUCCESS;
}

template <class Mine, class Opaque>
cublasStatus_t destroy_object(const char* function, const char* kind, Opaque* handle) {
  const Call call(function);
  if (handle == nullptr) return CUBLAS_STATUS_SUCCESS;
  delete reinterpret_cast<Mine*>(handle);
  --call->open[kind];
  return CUBLAS_STATUS_SUCCESS;
}

template <class Value>
cublasStatus_t set(const Call& call, Value& to, const void* from, std::size_t bytes) {
  if (bytes != sizeof to) {
    call.fault(cudaErrorInvalidValue, "an attribute of another size");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::memcpy(&to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t wrong(const Call& call, const std::string& what) {
  call.fault(cudaErrorInvalidValue, what);
  return CUBLAS_STATUS_INVALID_VALUE;
}

bool is_half(cudaDataType_t type) {
  return type == CUDA_R_16BF || type == CUDA_R_16F;
}

/// Returns the fault in the sizes and types (cuBLAS, "cublasLtMatmul()", table of supported types), or nothing.
std::string mismatch(const Matmul& product) {
  const MatmulOperation& operation = product.operation;
  const auto turned = [](MatrixLayout layout, cublasOperation_t how) {
    if (how == CUBLAS_OP_T) std::swap(layout.rows, layout.columns);
    return layout;
  };
  const MatrixLayout left = turned(product.left, operation.left), right = turned(product.right, operation.right);
  for (const MatrixLayout* layout : {&product.left, &product.right, &product.in, &product.out}) {
    if (layout->rows < 1 || layout->columns < 1) return "a matrix of no elements";
    if (layout->stride < layout->rows) return "a leading dimension below the rows";
  }
  if (left.columns != right.rows) return "inner dimensions that differ";
  for (const MatrixLayout* out : {&product.in, &product.out})
    if (out->rows != left.rows || out->columns != right.columns) return "an output of other dimensions";
  if (operation.compute != CUBLAS_COMPUTE_32F || operation.scale != CUDA_R_32F) return "this arithmetic is not played";
  const cudaDataType_t stored = product.left.type, out = product.out.type;
  if (product.right.type != stored || product.in.type != out) return "types that do not go together";
  if (stored == CUDA_R_32F ? out != CUDA_R_32F : !is_half(stored) || (out != stored && out != CUDA_R_32F))
    return "types that are not supported together";
  const int epilogue = operation.epilogue;
  if ((epilogue & (CUBLASLT_EPILOGUE_BIAS | 16 | CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB)) != 0 &&
      operation.bias == nullptr)
    return "an epilogue without its bias";
  if ((epilogue & 128) != 0 &&
      (operation.aux == nullptr || operation.aux_stride < product.out.rows || operation.aux_stride % 8 != 0))
    return "an epilogue without its auxiliary matrix, or with one whose stride is not a multiple of 8";
  return {};
}

/// Returns the words of an algorithm: its mark, and the product's sizes, forms, types and alignments.
std::uint64_t shape_of(const Matmul& product) {
  std::uint64_t mix = 1469598103934665603ULL;
  const auto add = [&](std::int64_t value) { mix = (mix ^ static_cast<std::uint64_t>(value)) * 1099511628211ULL; };
  for (const MatrixLayout* layout : {&product.left, &product.right, &product.in, &product.out})
    for (const std::int64_t value :
         {static_cast<std::int64_t>(layout->type), layout->rows, layout->columns, layout->stride})
      add(value);
  add(product.operation.left);
  add(product.operation.right);
  add(product.operation.multiprocessors);
  add(product.operation.epilogue);
  return mix;
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return make("cublasLtCreate", "handles of cuBLASLt", handle, cublasLtContext{});
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return destroy_object<cublasLtContext>("cublasLtDestroy", "handles of cuBLASLt", handle);
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t stride) {
  return make("cublasLtMatrixLayoutCreate", "layouts of matrices", layout,
              MatrixLayout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), stride});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy_object<MatrixLayout>("cublasLtMatrixLayoutDestroy", "layouts of matrices", layout);
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return make("cublasLtMatmulDescCreate", "descriptions of products", operation,
              MatmulOperation{.compute = compute, .scale = scale});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  return destroy_object<MatmulOperation>("cublasLtMatmulDescDestroy", "descriptions of products", operation);
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return make("cublasLtMatmulPreferenceCreate", "preferences", preference, MatmulPreference{});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy_object<MatmulPreference>("cublasLtMatmulPreferenceDestroy", "preferences", preference);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  const Call call("cublasLtMatmulDescSetAttribute");
  auto& own = mine<MatmulOperation>(operation);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(call, own.left, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(call, own.right, value, bytes);
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
      return set(call, own.multiprocessors, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(call, own.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(call, own.bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return set(call, own.bias_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return set(call, own.aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return set(call, own.aux_stride, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
      return set(call, own.aux_type, value, bytes);
    default:
      return wrong(call, "this attribute is not played");
  }
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  const Call call("cublasLtMatmulPreferenceSetAttribute");
  auto& own = mine<MatmulPreference>(preference);
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(call, own.workspace_bytes, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return set(call, own.reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return set(call, own.alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, bytes);
    default:
      return wrong(call, "this attribute is not played");
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t left, cublasLtMatrixLayout_t right,
                                              cublasLtMatrixLayout_t in, cublasLtMatrixLayout_t out,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  const Call call("cublasLtMatmulAlgoGetHeuristic");
  *found = 0;
  const Matmul product{.operation = mine<MatmulOperation>(operation),
                       .left = mine<MatrixLayout>(left),
                       .right = mine<MatrixLayout>(right),
                       .in = mine<MatrixLayout>(in),
                       .out = mine<MatrixLayout>(out)};
  if (const std::string what = mismatch(product); !what.empty()) return wrong(call, what);
  const auto& asked = mine<MatmulPreference>(preference);
  if ((asked.reductions & CUBLASLT_REDUCTION_SCHEME_INPLACE) != 0)
    return wrong(call, "split sums in place, whose order is that of the blocks' ends");
  if (wanted < 1) return wrong(call, "no algorithm is asked for");
  // cuBLASLt says so by an error, or by an empty answer.
  if (call->options.refuses_epilogues && product.operation.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
    return (shape_of(product) + call->options.seed) % 2 == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
  *found = 1;
  *results = {};
  results->state = CUBLAS_STATUS_SUCCESS;
  results->workspaceSize = std::min(asked.workspace_bytes, kWorkspace);
  results->algo.data[0] = shape_of(product);
  results->algo.data[1] = results->workspaceSize;
  for (int i = 0; i < 4; ++i) results->algo.data[2 + i] = asked.alignment[i];
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha, const void* left,
                              cublasLtMatrixLayout_t left_layout, const void* right,
                              cublasLtMatrixLayout_t right_layout, const void* beta, const void* in,
                              cublasLtMatrixLayout_t in_layout, void* out, cublasLtMatrixLayout_t out_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t workspace_bytes,
                              cudaStream_t stream) {
  const Matmul product{.operation = mine<MatmulOperation>(operation),
                       .left = mine<MatrixLayout>(left_layout),
                       .right = mine<MatrixLayout>(right_layout),
                       .in = mine<MatrixLayout>(in_layout),
                       .out = mine<MatrixLayout>(out_layout),
                       .left_values = left,
                       .right_values = right,
                       .in_values = in,
                       .out_values = out,
                       .alpha = *static_cast<const float*>(alpha),
                       .beta = *static_cast<const float*>(beta)};
  {
    const Call call("cublasLtMatmul");
    if (const std::string what = mismatch(product); !what.empty()) return wrong(call, what);
    if (algorithm == nullptr || algorithm->data[0] != shape_of(product))
      return wrong(call, "an algorithm that was chosen for another product");
    const void* values[] = {left, right, in, out};
    const MatrixLayout* layouts[] = {&product.left, &product.right, &product.in, &product.out};
    for (int i = 0; i < 4; ++i) {
      if (reinterpret_cast<std::uintptr_t>(values[i]) % algorithm->data[2 + i] != 0)
        return wrong(call, std::string("matrix ") + "ABCD"[i] + " is less aligned than the choice was told: " +
                               std::to_string(algorithm->data[2 + i]) + " bytes");
      int device = -1;
      bool is_known = false;
      if (!call->is_within(values[i], static_cast<std::size_t>(layouts[i]->bytes()), device, is_known) || !is_known)
        return wrong(call, std::string("matrix ") + "ABCD"[i] + " reaches beyond its memory");
    }
    if (product.beta != 0 && in == out && product.in.stride != product.out.stride)
      return wrong(call, "in place with two layouts");
    int device = -1;
    bool is_known = false;
    if (workspace_bytes < algorithm->data[1] || !call->is_within(workspace, workspace_bytes, device, is_known) ||
        !is_known || reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0)
      return wrong(call, "a workspace that is too small");
    if (product.operation.multiprocessors > 0 && product.operation.multiprocessors != stream->multiprocessors)
      return wrong(call, "is made for other SMs than its stream's");
    ++call->counts.products;
  }
  const std::uint64_t used = algorithm->data[1];
  const cudaError_t launched = launch(stream, "a product", [product, workspace, used] {
    std::memset(workspace, 0xFF, used);
    multiply(product);
  });
  return launched == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

const char* cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE" : "another status";
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "an unsupported value or parameter was passed" : "it failed";
}
