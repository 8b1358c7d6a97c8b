#pragma once
// The bytes that one stage holds on its rank in a training framework (schedules/cost_table.h says when each is held).
//
// Activations of a transformer layer, T tokens, 16 bit, residual tensors divided by t with sequence parallelism
// (Korthikanti et al. 2022, section 4, by operation):
// - inputs and outputs of both norms 8 T h; queries, keys and values; input of the projection; where queries and keys are
//   normed, the inputs of these norms (transformer_engine/pytorch/ops/basic/rmsnorm.py saves input and deviations);
// - unfused attention: probabilities 2 a T s / t, and with dropout its mask and its result, 3 a T s / t;
// - input of the activation; input of the down projection; with dropout a mask of 1 byte for each branch, 2 T h.
// Mixtures of experts keep the copies of tokens that their experts compute, up to the down projection's input, and the
// operands of the weighting: those of the combination, or (StackSpec::weighted_activations) the activation's result
// where a separate kernel multiplies it (fused_activation false). A gate's own result is kept there too. Under fp8
// products may keep their inputs in one byte an element (fp8_saved): both norms' results, the projection's input
// besides attention's own result, the copies and the down projection's input.
//
// Full recomputation leaves a layer's input. Selective recomputation leaves all but the probabilities; or, by
// StackSpec::selective, a layer's input, every second product, attention's result and the tensor group's sums; or all
// but the results of norms and of routed experts' activations. A share of the tensors that are left may wait in host
// memory (offloaded_share), and is back for the layer's own backward.
//
// Model state: weights, gradients, optimizer (spec/training_spec.h); that of routed experts over their own replicas.
//
// With a split backward a layer's tensors stay until W, except those that W does not need (backward_moments.h).
// The workspace of a backward is the largest of its moments: at the loss the stack's `logit_bytes` for each logit; the
// head's products and their gradients; a layer with its rebuilt tensors, the gradient that is being reduced, and the
// temporary tensors of its backward (backward_moments.h); at last the gradient of the embedding's table, when no other
// tensor of its micro-batch is left.
//
// ZeRO 3 gathers two neighbouring layers, or both tables and two layers (StackSpec::tables_stay_gathered). Beside the
// gathered weights stand shards of them, or only the optimizer's master weights (StackSpec::sharded_masters). A
// pipeline's last stage may hold the logits of all micro-batches (StackSpec::kept_logits). Behind the last backward the
// optimizer takes buffers that an allocator of blocks cannot cut from those of activations (`step_bytes`,
// `bucket_mib`); the largest of them is the norm of one tensor (`norm_bytes`).

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/layer.h"
#include "planner/price/memory/backward_moments.h"
#include "planner/price/memory/stage_memory.h"
#include "planner/spec/layout.h"
#include "planner/spec/stack_spec.h"
#include "planner/spec/training_spec.h"

namespace plumb { inline namespace planner {

/// The parameters and bytes that one layer adds to its stage on one rank; bytes are those of a micro-batch.
struct FrameworkFootprint {
  enum class Place : std::uint8_t { kFirst, kInner, kLast };
  Place place = Place::kInner;  ///< embedding, transformer layer, head
  std::int64_t parameters = 0;  ///< besides those of routed experts
  std::int64_t expert_parameters = 0;
  std::int64_t shared_parameters = 0;  ///< those that the embedding of the same stage already holds (a shared table)
  std::int64_t largest_tensor = 0;     ///< parameters of the largest single weight
  double kept = 0;
  double rebuilt = 0;
  double released = 0;        ///< part of `kept` that goes before W where W is a separate action
  double backward = 0;        ///< bytes held temporarily in the layer's backward
  double split_backward = 0;  ///< `backward` where W is a separate action
  double score_buffer = 0;    ///< bytes held throughout, once for all layers of a stage
  double output = 0;          ///< bytes kept besides `kept` if it is a stage's last layer
  double at_loss = 0;         ///< bytes of the head at the loss
  double head_backward = 0;   ///< bytes of the head's backward
  double table_gradient = 0;  ///< bytes of the embedding's gradient
  std::vector<WeightShape> weights;
};

/// Returns a layer's footprint, which depends only on the degrees, micro-batch and recomputation of `layout`.
FrameworkFootprint framework_footprint(const Layer& layer, const TrainingSpec& training, const StackSpec& stack,
                                       const Layout& layout);

/// Return the memory of a stage of these layers in order. In the first form `layers` are indices of `kinds`.
StageMemory framework_memory(const std::vector<FrameworkFootprint>& kinds, std::span<const int> layers,
                             const TrainingSpec& training, const StackSpec& stack, const Layout& layout,
                             BackwardForm backward);
StageMemory framework_memory(const std::vector<Layer>& layers, const TrainingSpec& training, const StackSpec& stack,
                             const Layout& layout, BackwardForm backward);

}}  // namespace plumb::planner
