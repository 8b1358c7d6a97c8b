#pragma once
// What a backward holds for a while besides the tensors that its forward kept, and the tensors of weight gradients.
//
// A layer's backward goes from its down projection to its first norm. Elements on one rank, T tokens, the gradient of
// the layer's output T h held all along (gathered over the tensor group for the products under sequence parallelism):
//   down projection  the gradient of its input T f, and of its weights h f
//   activation       the gradient of its input T u; that of its output takes the place of the product it has consumed
//   up projection    the gradient of its input T h, and of its weights h u; T f less, which the activation has freed
// with f and u the channels of the activation's output and input. From there on more has been freed than is taken.
// Unfused attention, with A = b a s^2 / t scores and v the channels of the context:
//   softmax          the gradients of the layer's output T h and of the context T v, and those of the probabilities
//                    before and behind their dropout, 2 A (the softmax's own takes the place of one of them); what the
//                    block of products kept, T (u + f), has gone. Where W is an action of its own it has not, but for
//                    the input of the activation, and the gradients of the products' outputs T (h + u) wait besides.
// W needs of a layer each product's input and the gradient of its output: T (h + v + h + f) and T (q + h + u + h), q
// the channels of queries, keys and values; the rest goes with I (Qi et al. 2024, table 1: 32 s b h bytes of 34 + 5 a
// s/h). Weights' gradients stand in the computing precision before they are added to a buffer, one product's at a time;
// where products add to the buffer themselves, a tensor for autograd is as large, if there is one
// (StackSpec::weight_gradients), or one for each shape is kept from step to step (kept_weight_gradients).

#include <array>
#include <vector>

#include "kernels/layer/layer.h"
#include "planner/spec/stack_spec.h"

namespace plumb { inline namespace planner {

/// The most bytes that a layer's backward holds besides what was kept; `element` bytes an element.
double layer_backward_bytes(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack,
                            double element);

/// The most bytes that the backward of unfused attention holds besides what the layer kept; 0 where it is fused or the
/// layer has experts. `split`: without W.
double attention_backward_bytes(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack,
                                bool split, double element);

/// Scores of one layer's unfused attention in one micro-batch; 0 where it is fused.
double score_elements(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack);

/// What W needs of a layer of plain products; nothing is known (0) of experts and latent attention.
double weight_grad_bytes(const TransformerLayer& layer, const LayerWork& work, double element);

/// Rows and columns of one product's weights on one rank.
using WeightShape = std::array<double, 2>;

/// Of a layer's products.
std::vector<WeightShape> weight_shapes(const TransformerLayer& layer, const LayerWork& work);

/// Elements of the shapes that differ.
double distinct_elements(std::vector<WeightShape> shapes);

/// The head's own backward: the gradients of `logits` logits, of the table of `rows` rows, and of its input, which
/// sequence parallelism gathers; `stream` and `residual` elements of the residual stream, whole and on this rank.
double head_backward_bytes(const HeadLayer& layer, const StackSpec& stack, double logits, double rows, double stream,
                           double residual, double element);

}}  // namespace plumb::planner
