#pragma once
// The bytes that a backward holds temporarily besides the tensors that its forward kept, and the tensors of weight
// gradients.
//
// A layer's backward goes from its down projection to its first norm. The sizes below are elements on one rank with T
// tokens. The gradient of the layer's output, T h, is held all along (gathered over the tensor group for the products
// under sequence parallelism):
//   down projection  the gradient of its input T f, and of its weights h f
//   activation       the gradient of its input T u; that of its output takes the place of the product it has consumed
//   up projection    the gradient of its input T h, and of its weights h u; T f less, which the activation has freed
// f and u are the channels of the activation's output and input. From there on more has been freed than is taken.
//
// Unfused attention has A = b a s^2 / t scores and v channels of the context:
//   softmax          the gradients of the layer's output T h and of the context T v, and those of the probabilities
//                    before and behind their dropout, 2 A (the softmax's own takes the place of one of them). The
//                    tensors that the block of products kept, T (u + f), have gone. Where W is a separate action, only
//                    the input of the activation has gone, and the gradients of the products' outputs T (h + u) wait
//                    besides.
// W needs each product's input and the gradient of its output: T (h + v + h + f) and T (q + h + u + h), where q are the
// channels of queries, keys and values. The rest goes with I (Qi et al. 2024, table 1: 32 s b h bytes of 34 + 5 a s/h).
// Weights' gradients stand in the computing precision before they are added to a buffer, one product's at a time. Where
// products add to the buffer themselves, autograd holds an equally large tensor if StackSpec::weight_gradients is set;
// with kept_weight_gradients one tensor for each shape is kept from step to step.

#include <array>
#include <vector>

#include "kernels/layer.h"
#include "planner/spec/stack_spec.h"

namespace plumb { inline namespace planner {

/// Returns the most bytes that a layer's backward holds besides the kept tensors; `element` is the bytes of an element.
double layer_backward_bytes(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack,
                            double element);

/// Returns the most bytes that the backward of unfused attention holds besides the layer's kept tensors; 0 where
/// attention is fused or the layer has experts. `split`: W is a separate action.
double attention_backward_bytes(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack,
                                bool split, double element);

/// Returns the scores of one layer's unfused attention in one micro-batch; 0 where it is fused.
double score_elements(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack);

/// Returns the bytes that W needs of a layer of plain products; 0 (not known) for experts and latent attention.
double weight_grad_bytes(const TransformerLayer& layer, const LayerWork& work, double element);

/// Rows and columns of one product's weights on one rank.
using WeightShape = std::array<double, 2>;

/// Returns the shapes of a layer's products besides the router's, of one expert where there are experts.
std::vector<WeightShape> weight_shapes(const TransformerLayer& layer, const LayerWork& work);

/// Returns the sum of elements over the different shapes.
double distinct_elements(std::vector<WeightShape> shapes);

/// Returns the bytes of the head's own backward: the gradients of `logits` logits, of the table of `rows` rows, and of
/// its input, which sequence parallelism gathers. `stream` and `residual` are elements of the residual stream, whole
/// and on this rank.
double head_backward_bytes(const HeadLayer& layer, const StackSpec& stack, double logits, double rows, double stream,
                           double residual, double element);

}}  // namespace plumb::planner
