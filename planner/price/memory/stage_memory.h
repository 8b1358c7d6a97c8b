#pragma once
// The bytes that one stage holds on its rank (schedules/cost_table.h says when each is held).
//
// Model state (Rajbhandari et al. 2020, section 3): weights in the computing precision, gradients in theirs, AdamW's
// state. ZeRO 1 divides the optimizer state by the replicas (context ranks among them), 2 also the gradients, 3 also
// the weights; state of routed experts is divided by the fewer replicas that have the same experts. ZeRO 2 and 3 reduce
// layer by layer, so that one layer's whole gradient stands beside the shards. ZeRO 3 gathers layer by layer, one
// ahead, so that two neighbouring layers stand whole (Zhao et al. 2023).
//
// Some state is counted tensor by tensor. 8-bit AdamW's moments are a byte an element and a scale of 4 bytes for each
// block of 2048 (Dettmers et al. 2022). Adafactor's are the sums of a matrix by row and by column in fp32, and the
// second moment of a vector (Shazeer & Stern 2018).
//
// Activations are the tensors that the layer's program keeps for its backward (kernels/layer/program/saved_tensors.h;
// Korthikanti et al. 2022, section 4, without dropout and, since attention is fused, without the s^2 term), except those
// that recomputation drops:
//   none       all are kept
//   selective  the outputs of norms and of the MLP's activation are dropped; one layer's are rebuilt at a time
//   full       each transformer layer keeps its input; one layer is rebuilt at a time
// With a split backward, tensors rebuilt at I wait for W, so that all layers' stand at once. With R actions F
// keeps the stage's input and R holds all the rest (docs/design.md, rule 5).

#include <cstdint>
#include <vector>

#include "kernels/layer.h"
#include "planner/spec/layout.h"
#include "planner/spec/training_spec.h"
#include "schedules/cost_table.h"

namespace plumb { inline namespace planner {

/// The form of a schedule's backward, which decides how long rebuilt tensors live.
struct BackwardForm {
  bool split = false;              ///< I and W are separate actions
  bool recompute_actions = false;  ///< R is a separate action

  friend bool operator==(const BackwardForm&, const BackwardForm&) = default;
};

/// Returns the elements or bytes of the largest of `parts` equal shares.
inline std::int64_t largest_share(std::int64_t total, int parts) {
  return (total + parts - 1) / parts;
}

/// The parameters and bytes that one layer adds to its stage, on one rank.
struct LayerFootprint {
  std::int64_t parameters = 0;  ///< besides those of routed experts
  std::int64_t expert_parameters = 0;
  std::int64_t optimizer_bytes = 0;         ///< bytes of the state of the former
  std::int64_t expert_optimizer_bytes = 0;  ///< and of the latter
  std::int64_t kept_bytes = 0;              ///< bytes of a micro-batch from F to the last backward part
  std::int64_t rebuilt_bytes = 0;
  std::int64_t released_at_input_grad_bytes = 0;
  std::int64_t forward_workspace_bytes = 0;
  std::int64_t backward_workspace_bytes = 0;
  std::int64_t output_bytes = 0;
  bool rebuilt_whole = false;  ///< full recomputation rebuilds all but its input
};

/// Returns a layer's footprint. It depends on `work`, the recomputation and the training's precision, but on no
/// schedule and no sharding over replicas.
LayerFootprint layer_footprint(const Layer& layer, const TrainingSpec& training, const LayerWork& work,
                               Recompute recompute);

/// Returns a stage's memory. `layers` are the stage's, in order.
StageMemory stage_memory(const std::vector<LayerFootprint>& layers, const TrainingSpec& training, const Layout& layout,
                         BackwardForm backward);
StageMemory stage_memory(const std::vector<Layer>& layers, const TrainingSpec& training, const Layout& layout,
                         BackwardForm backward);

/// Returns the work of one micro-batch under that layout.
LayerWork work_of(const TrainingSpec& training, const Layout& layout);

}}  // namespace plumb::planner
