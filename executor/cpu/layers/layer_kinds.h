#pragma once
// The kinds of layer on the CPU. Each has one function and one file (executor/cpu/layers/embedding.cpp, ...). Stages
// use make_cpu_layer() instead. `sequence`: tokens of a whole sequence. A transformer is given as the share of its
// rank, the two ends as whole layers.

#include <cstdint>
#include <memory>

#include "executor/cpu/layers/layer.h"
#include "kernels/layer.h"

namespace plumb { inline namespace executor {

std::unique_ptr<CpuLayer> make_cpu_embedding(const EmbeddingLayer& layer, const LayerSeat& seat);
std::unique_ptr<CpuLayer> make_cpu_transformer(const TransformerLayer& layer, std::int64_t sequence,
                                               const LayerSeat& seat);
std::unique_ptr<CpuLayer> make_cpu_head(const HeadLayer& layer, const TensorSeat& seat);
std::unique_ptr<CpuLayer> make_cpu_input(const InputLayer& layer);
std::unique_ptr<CpuLayer> make_cpu_convolution(const ConvolutionLayer& layer);
std::unique_ptr<CpuLayer> make_cpu_pooling(const PoolingLayer& layer);
std::unique_ptr<CpuLayer> make_cpu_linear(const LinearLayer& layer);
std::unique_ptr<CpuLayer> make_cpu_mlp(const MlpLayer& layer);
std::unique_ptr<CpuLayer> make_cpu_loss(const LossLayer& layer);

}}  // namespace plumb::executor
