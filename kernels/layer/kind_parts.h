#pragma once
// The functions of each kind of layer; those of kernels/layer/layer.h call them by the kind of a Layer. Each family has
// a file: ends.cpp (embedding, head, input, loss), transformer.cpp, image.cpp (convolution, pooling), linear.cpp
// (linear, MLP).

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/layer/layer.h"

namespace plumb { inline namespace kernels {

inline std::int64_t share(std::int64_t total, int parts) {
  return (total + parts - 1) / parts;
}

inline std::int64_t tokens_in(const LayerWork& work) {
  return work.microbatch * work.sequence;
}

/// Returns the tokens that norms, residuals and the output biases work on.
inline std::int64_t residual_tokens_of(const LayerWork& work) {
  return work.sequence_parallel ? share(tokens_in(work), work.tensor_parallel) : tokens_in(work);
}

inline std::int64_t is_layer_norm(NormKind kind) {
  return kind == NormKind::kLayerNorm ? 1 : 0;
}

inline std::int64_t statistics_per_row(NormKind kind) {
  return kind == NormKind::kLayerNorm ? 2 : 1;
}

inline KernelCall gemm_call(std::int64_t m, std::int64_t n, std::int64_t k, GemmForm form) {
  return kernel_call(KernelKind::kGemm, {m, n, k, 1, static_cast<std::int64_t>(form)});
}

inline KernelCall norm_call(KernelKind kind, std::int64_t rows, std::int64_t columns, NormKind norm_kind) {
  return kernel_call(kind, {rows, columns, is_layer_norm(norm_kind)});
}

inline void append_norm(std::vector<ParameterTensor>& tensors, const std::string& name, NormKind kind,
                        std::int64_t hidden) {
  tensors.push_back({name + ".gain", {hidden}});
  if (kind == NormKind::kLayerNorm) tensors.push_back({name + ".bias", {hidden}});
}

std::vector<ParameterTensor> parameters_of(const EmbeddingLayer& layer, int tensor_parallel, ExpertDivision experts);
std::vector<KernelCall> kernels_of(const EmbeddingLayer& layer, const LayerWork& work, Pass pass);
std::vector<SavedTensor> saved_of(const EmbeddingLayer& layer, const LayerWork& work);
std::int64_t workspace_of(const EmbeddingLayer& layer, const LayerWork& work, Pass pass);
std::int64_t input_of(const EmbeddingLayer& layer, const LayerWork& work);
std::int64_t output_of(const EmbeddingLayer& layer, const LayerWork& work);

std::vector<ParameterTensor> parameters_of(const TransformerLayer& layer, int tensor_parallel, ExpertDivision experts);
std::vector<KernelCall> kernels_of(const TransformerLayer& layer, const LayerWork& work, Pass pass);
std::vector<SavedTensor> saved_of(const TransformerLayer& layer, const LayerWork& work);
std::int64_t workspace_of(const TransformerLayer& layer, const LayerWork& work, Pass pass);
std::int64_t input_of(const TransformerLayer& layer, const LayerWork& work);
std::int64_t output_of(const TransformerLayer& layer, const LayerWork& work);

std::vector<ParameterTensor> parameters_of(const HeadLayer& layer, int tensor_parallel, ExpertDivision experts);
std::vector<KernelCall> kernels_of(const HeadLayer& layer, const LayerWork& work, Pass pass);
std::vector<SavedTensor> saved_of(const HeadLayer& layer, const LayerWork& work);
std::int64_t workspace_of(const HeadLayer& layer, const LayerWork& work, Pass pass);
std::int64_t input_of(const HeadLayer& layer, const LayerWork& work);
std::int64_t output_of(const HeadLayer& layer, const LayerWork& work);

std::vector<ParameterTensor> parameters_of(const InputLayer& layer, int tensor_parallel, ExpertDivision experts);
std::vector<KernelCall> kernels_of(const InputLayer& layer, const LayerWork& work, Pass pass);
std::vector<SavedTensor> saved_of(const InputLayer& layer, const LayerWork& work);
std::int64_t workspace_of(const InputLayer& layer, const LayerWork& work, Pass pass);
std::int64_t input_of(const InputLayer& layer, const LayerWork& work);
std::int64_t output_of(const InputLayer& layer, const LayerWork& work);

std::vector<ParameterTensor> parameters_of(const ConvolutionLayer& layer, int tensor_parallel, ExpertDivision experts);
std::vector<KernelCall> kernels_of(const ConvolutionLayer& layer, const LayerWork& work, Pass pass);
std::vector<SavedTensor> saved_of(const ConvolutionLayer& layer, const LayerWork& work);
std::int64_t workspace_of(const ConvolutionLayer& layer, const LayerWork& work, Pass pass);
std::int64_t input_of(const ConvolutionLayer& layer, const LayerWork& work);
std::int64_t output_of(const ConvolutionLayer& layer, const LayerWork& work);

std::vector<ParameterTensor> parameters_of(const PoolingLayer& layer, int tensor_parallel, ExpertDivision experts);
std::vector<KernelCall> kernels_of(const PoolingLayer& layer, const LayerWork& work, Pass pass);
std::vector<SavedTensor> saved_of(const PoolingLayer& layer, const LayerWork& work);
std::int64_t workspace_of(const PoolingLayer& layer, const LayerWork& work, Pass pass);
std::int64_t input_of(const PoolingLayer& layer, const LayerWork& work);
std::int64_t output_of(const PoolingLayer& layer, const LayerWork& work);

std::vector<ParameterTensor> parameters_of(const LinearLayer& layer, int tensor_parallel, ExpertDivision experts);
std::vector<KernelCall> kernels_of(const LinearLayer& layer, const LayerWork& work, Pass pass);
std::vector<SavedTensor> saved_of(const LinearLayer& layer, const LayerWork& work);
std::int64_t workspace_of(const LinearLayer& layer, const LayerWork& work, Pass pass);
std::int64_t input_of(const LinearLayer& layer, const LayerWork& work);
std::int64_t output_of(const LinearLayer& layer, const LayerWork& work);

std::vector<ParameterTensor> parameters_of(const MlpLayer& layer, int tensor_parallel, ExpertDivision experts);
std::vector<KernelCall> kernels_of(const MlpLayer& layer, const LayerWork& work, Pass pass);
std::vector<SavedTensor> saved_of(const MlpLayer& layer, const LayerWork& work);
std::int64_t workspace_of(const MlpLayer& layer, const LayerWork& work, Pass pass);
std::int64_t input_of(const MlpLayer& layer, const LayerWork& work);
std::int64_t output_of(const MlpLayer& layer, const LayerWork& work);

std::vector<ParameterTensor> parameters_of(const LossLayer& layer, int tensor_parallel, ExpertDivision experts);
std::vector<KernelCall> kernels_of(const LossLayer& layer, const LayerWork& work, Pass pass);
std::vector<SavedTensor> saved_of(const LossLayer& layer, const LayerWork& work);
std::int64_t workspace_of(const LossLayer& layer, const LayerWork& work, Pass pass);
std::int64_t input_of(const LossLayer& layer, const LayerWork& work);
std::int64_t output_of(const LossLayer& layer, const LayerWork& work);

}}  // namespace plumb::kernels
