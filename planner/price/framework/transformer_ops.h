#pragma once
// The kernels and collectives of a transformer layer as the training frameworks run it.
//
// Symbols: T tokens of the micro-batch on the rank, E = 2 T h bytes of a residual stream (16 bit), Es = E / t with
// sequence parallelism else E, A = 2 b a s^2 / t bytes of scores.
//   forward   norm 2 Es; QKV; [RoPE]; attention; projection; bias, dropout and residual 3.5 Es (3 without dropout);
//             norm 2 Es; up; activation 2 (gated 3) times its output; down; bias, dropout and residual again
//   unfused   scores [s,s,d], softmax 2 A, dropout 2.5 A, context [s,d,s], copy 2 E / t
//   backward  for each matrix two products with their own shapes; dropout 2.5 Es and bias gradient Es for each branch;
//             activation 3 (gated 5) times; norm 5 Es and residual 3 Es (6 Es in one kernel), twice; attention: four
//             products, dropout 2.5 A, softmax 3 A, or one fused kernel of 2.5 times the forward's FLOPs; QKV gradients
//             joined 9 E / t
//   tensor    Shoeybi et al. 2019: all-reduces of E, two forward and two backward; with sequence parallelism
//             (Korthikanti et al. 2022) an all-gather and a reduce-scatter for each, and two more all-gathers before
//             the weight gradients (StackSpec::regathered_inputs); each with a copy where the sequence is not the first
//             dimension (copied_collectives); under fp8 inputs gathered in 16 bit are quantized whole by every rank
//   context   a ring or an all-gather of keys and values, or four all-to-alls (Ulysses)
//   experts   router, permutation, all-to-all of k T h elements, grouped products by rows an expert, and back
// Selective recomputation rebuilds attention's core; or every second product and all memory-bound kernels, while the
// tensor group's reduced results are kept (torchtitan models/llama/parallelize_llama.py, 2024); or both norms and
// routed experts' activations (Megatron-Core's output-discarding checkpoints). Where the fused softmax does not take
// the shape (StackSpec::fused_softmax_rows), scale, mask and softmax are separate kernels: 6 A more each way.

#include "planner/price/framework/element_bytes.h"
#include "planner/price/framework/kernel.h"
#include "planner/spec/stack_spec.h"

namespace plumb { inline namespace planner {

/// Leaves out a half that the block has not, and a state mixer (framework/state_mixer_ops.h).
LayerOps transformer_ops(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack,
                         ElementBytes bytes);

}}  // namespace plumb::planner
