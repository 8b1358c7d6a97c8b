#pragma once
// The bytes that one stage holds on its rank in a training framework (schedules/cost_table.h says when each is held).
//
// Activations of a transformer layer, T tokens, 16 bit, residual tensors divided by t with sequence parallelism
// (Korthikanti et al. 2022, section 4, by op):
//   inputs and outputs of both norms 8 T h; queries, keys and values; unfused attention: probabilities 2 a T s / t and
//   with dropout its mask and its result, 3 a T s / t; input of the projection; input of the activation; input of the
//   down projection; with dropout a mask of 1 byte for each branch, 2 T h
// Mixtures of experts keep the copies of tokens that their experts compute, up to the down projection's input, and what
// is weighed: what the combination takes, or (StackSpec::weighted_activations) the activation's result where a kernel
// of its own multiplies it (fused_activation false); a gate's own result stays there too. Under fp8 products may keep
// their inputs in one byte an element (fp8_saved): both norms' results, the projection's input besides attention's own
// result, the copies and the down projection's input. Recomputation leaves: full, a layer's input; selective, all but
// the probabilities, or (StackSpec::selective) a layer's input, every second product, attention's result and the tensor
// group's sums, or all but the results of norms and routed experts' activations. A share of what is left may wait in
// host memory (offloaded_share), and is back for the layer's own backward.
// Model state: weights, gradients, optimizer (spec/training_spec.h), routed experts over their own replicas.
// Where the backward is split a layer's tensors stay until W, but for what W does not need (backward_moments.h). A
// backward's workspace is the largest of its moments: at the loss the stack's `logit_bytes` for each logit, then the
// head's products and their gradients, a layer with what is rebuilt of it, its gradient being reduced, and what its
// backward holds for a while (backward_moments.h), at last the gradient of the embedding's table, when nothing else of
// its micro-batch is left. ZeRO 3 gathers two neighbouring layers, or both tables and two layers
// (StackSpec::tables_stay_gathered); beside the gathered weights stand shards of them, or the optimizer's master
// weights alone (StackSpec::sharded_masters). A pipeline's last stage may hold the logits of all micro-batches
// (StackSpec::kept_logits). Behind the last backward the optimizer takes buffers that an allocator of blocks cannot cut
// from those of activations (`step_bytes`, `bucket_mib`), the largest of them the norm of one tensor (`norm_bytes`).

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/layer/layer.h"
#include "planner/price/memory/backward_moments.h"
#include "planner/price/memory/stage_memory.h"
#include "planner/spec/layout.h"
#include "planner/spec/stack_spec.h"
#include "planner/spec/training_spec.h"

namespace plumb { inline namespace planner {

/// What one layer adds to its stage, on one rank; bytes are those of a micro-batch.
struct FrameworkFootprint {
  enum class Place : std::uint8_t { kFirst, kInner, kLast };
  Place place = Place::kInner;  ///< embedding, transformer layer, head
  std::int64_t parameters = 0;  ///< besides those of routed experts
  std::int64_t expert_parameters = 0;
  std::int64_t shared_parameters = 0;  ///< of them, a table that the embedding of the same stage has already
  std::int64_t largest_tensor = 0;     ///< of them, of one weight
  double kept = 0;
  double rebuilt = 0;
  double released = 0;        ///< of what is kept, before W where that is an action of its own
  double backward = 0;        ///< for a while in the layer's backward
  double split_backward = 0;  ///< the same where W is an action of its own
  double score_buffer = 0;    ///< throughout, once for all layers of a stage
  double output = 0;          ///< kept beside, of a stage's last layer
  double at_loss = 0;         ///< of the head
  double head_backward = 0;   ///< of the head
  double table_gradient = 0;  ///< of the embedding
  std::vector<WeightShape> weights;
};

/// `layout` decides it by its degrees, micro-batch and recomputation alone.
FrameworkFootprint framework_footprint(const Layer& layer, const TrainingSpec& training, const StackSpec& stack,
                                       const Layout& layout);

/// A stage of these layers, in order: each the number of its kind.
StageMemory framework_memory(const std::vector<FrameworkFootprint>& kinds, std::span<const int> layers,
                             const TrainingSpec& training, const StackSpec& stack, const Layout& layout,
                             BackwardForm backward);
StageMemory framework_memory(const std::vector<Layer>& layers, const TrainingSpec& training, const StackSpec& stack,
                             const Layout& layout, BackwardForm backward);

}}  // namespace plumb::planner
