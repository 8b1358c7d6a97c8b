#pragma once
// The two ends of a model as the training frameworks run them, both divided by vocabulary over the tensor group.
//
//   embedding  forward: lookup 2 E, positions 3 E, dropout 2.5 E, all-reduce of E; backward: an element of the table
//              is zeroed in the computing precision, read, and added to its buffer (8 bytes, 12 where that is fp32), as
//              autograd makes a dense gradient for each micro-batch (torch.nn.functional.embedding)
//   head       norm, product [T, V/t, h] and its two gradients, loss; L = 2 T V/t bytes of logits:
//              fused cross-entropy 1 L forward and 2 L backward; three small all-reduces. In fp32 passes 19 L and 7 L
//              (NVIDIA/Megatron-LM megatron/core/tensor_parallel/cross_entropy.py): the fp32 copy 3, its maximum 2,
//              differences 4, exponentials 4, their sum 2 and quotients 4; backward the product 4 and the 16-bit copy 3.
//              torch.nn.CrossEntropyLoss moves 26 L as well, and the compiled passes of megatron/core/fusions 22 to 26

#include "planner/price/framework/element_bytes.h"
#include "planner/price/framework/kernel.h"
#include "planner/spec/stack_spec.h"

namespace plumb { inline namespace planner {

LayerOps embedding_ops(const EmbeddingLayer& layer, const LayerWork& work, const StackSpec& stack, ElementBytes bytes);
LayerOps head_ops(const HeadLayer& layer, const LayerWork& work, const StackSpec& stack, ElementBytes bytes);

}}  // namespace plumb::planner
