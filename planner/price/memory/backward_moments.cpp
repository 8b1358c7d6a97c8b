#include "planner/price/memory/backward_moments.h"

#include <algorithm>
#include <cmath>

#include "planner/price/framework/sizes.h"

namespace plumb { inline namespace planner {
namespace {

/// A block of two products around an activation.
struct FeedForwardRows {
  double rows = 0;
  double up = 0;
  double ffn = 0;
};

FeedForwardRows routed_block(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack,
                             const RankSizes& sizes) {
  const double tokens = work.sequence_parallel ? sizes.tokens / work.tensor_parallel : sizes.tokens;
  const double ffn = static_cast<double>(layer.expert_ffn) / work.experts.tensor;
  return {
      .rows = tokens * static_cast<double>(layer.experts_per_token) * work.experts.tensor * expert_load(layer, stack),
      .up = up_products(layer) * ffn,
      .ffn = ffn};
}

/// Returns the elements that the block's backward holds besides the gradient of its output.
double block_backward(const FeedForwardRows& block, double h, bool weights) {
  const double down = block.rows * block.ffn + (weights ? h * block.ffn : 0);
  const double activation = block.rows * block.up;
  const double up = block.rows * (h - block.ffn) + (weights ? h * block.up : 0);
  return std::max({down, activation, up});
}

}  // namespace

double layer_backward_bytes(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack,
                            double element) {
  const RankSizes sizes = rank_sizes(layer, work);
  const auto h = static_cast<double>(layer.hidden);
  if (layer.experts > 0) {
    const FeedForwardRows block = routed_block(layer, work, stack, sizes);
    return element * (sizes.residual + block.rows * h + block_backward(block, h, false));
  }
  const double gathered = work.sequence_parallel && work.tensor_parallel > 1 ? sizes.stream : 0;
  const FeedForwardRows block{.rows = sizes.tokens, .up = sizes.up, .ffn = sizes.ffn};
  return element *
         (sizes.residual + gathered + block_backward(block, h, stack.weight_gradients && !stack.kept_weight_gradients));
}

double score_elements(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack) {
  if (stack.attention != AttentionKernel::kUnfused) return 0;
  const RankSizes sizes = rank_sizes(layer, work);
  return sizes.heads * sizes.tokens * static_cast<double>(work.sequence);
}

double attention_backward_bytes(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack,
                                bool split, double element) {
  if (stack.attention != AttentionKernel::kUnfused || layer.experts > 0 || layer.heads == 0) return 0;
  const RankSizes sizes = rank_sizes(layer, work);
  const double scores = (layer.dropout > 0 ? 2 : 1) * score_elements(layer, work, stack);
  const double products = split ? sizes.stream : -sizes.tokens * (sizes.up + sizes.ffn);
  return element * std::fmax(0, sizes.residual + sizes.tokens * sizes.value + scores + products);
}

double weight_grad_bytes(const TransformerLayer& layer, const LayerWork& work, double element) {
  if (layer.experts > 0 || layer.kv_rank > 0) return 0;
  const RankSizes sizes = rank_sizes(layer, work);
  const double inputs = sizes.halves * sizes.residual + sizes.tokens * (sizes.value + sizes.ffn);
  const double gradients = sizes.halves * sizes.residual + sizes.tokens * (sizes.qkv + sizes.gate + sizes.up);
  return element * (inputs + gradients);
}

std::vector<WeightShape> weight_shapes(const TransformerLayer& layer, const LayerWork& work) {
  std::vector<WeightShape> shapes;
  for (const ParameterTensor& tensor : layer_parameters(layer, work.tensor_parallel, work.experts)) {
    const std::size_t dimensions = tensor.shape.size();
    if (dimensions < 2 || tensor.name == "router.weight") continue;
    shapes.push_back({static_cast<double>(tensor.shape[dimensions - 2]), static_cast<double>(tensor.shape.back())});
  }
  return shapes;
}

double distinct_elements(std::vector<WeightShape> shapes) {
  std::ranges::sort(shapes);
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  double elements = 0;
  for (const auto& [rows, columns] : shapes) elements += rows * columns;
  return elements;
}

double head_backward_bytes(const HeadLayer& layer, const StackSpec& stack, double logits, double rows, double stream,
                           double residual, double element) {
  const double gathered = residual < stream ? stream : 0;
  const double table = stack.weight_gradients ? rows * static_cast<double>(layer.hidden) : 0;
  return element * (logits + table + 2 * residual + stream + gathered);
}

}}  // namespace plumb::planner
