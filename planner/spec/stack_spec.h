#pragma once
// A stack is the framework that trains: which kernels it fuses, and what it recomputes, hides and keeps. It is data,
// not code: a framework (or a version of it) is a JSON file under tools/specs/stacks, each figure with its source.
//
//   StackSpec stack = parse_stack(text_of("tools/specs/stacks/megatron-core.json"), "megatron-core.json");

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "planner/spec/context_kind.h"
#include "planner/spec/stack_limits.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

/// The kernels that compute attention. Unfused: batched GEMMs around a softmax, with the s x s scores in memory.
enum class AttentionKernel : std::uint8_t { kUnfused, kTriton, kFlash2, kFlash3, kCudnn };

/// The tensors that selective recomputation rebuilds: the core of attention (Korthikanti et al. 2022); or all but the
/// results of every second product, of attention's core and of the tensor group's reductions (torchtitan's
/// per-operation checkpoints); or the results of norms and of routed experts' activations (Megatron-Core's
/// --recompute-modules layernorm moe_act).
enum class SelectiveKind : std::uint8_t { kAttentionCore, kAlternateProducts, kNormsAndActivations };

/// The number of times that a token travels to its experts: once for each of them (an all-to-all of NCCL's), or once
/// for each rank that holds some of them, and once for each node of the network where those ranks sit (DeepEP,
/// HybridEP).
enum class ExpertDispatch : std::uint8_t { kPerExpert, kPerRank };

/// The scope of CUDA graphs, which the host launches at once: nothing, a layer without its routed experts and their
/// exchange, or the whole iteration.
enum class GraphScope : std::uint8_t { kNone, kOutsideExperts, kIteration };

/// The layers of a stage where the layout names none (framework_split.h).
enum class StageSplit : std::uint8_t { kEven, kEndsAsLayers };

/// The way in which products are quantized: a scale for each tensor, row or block (TorchAO's tensorwise and rowwise,
/// DeepSeek-V3's blockwise, MXFP8). NVFP4 shares these figures, with its own bytes, but for the weights that replicas
/// gather.
struct Fp8Recipe {
  /// Factor on the device's fp8 rate for products; the result is never above the peak.
  double gemm_factor = 1;
  double cast_bytes = 0;        ///< bytes moved for each element that is quantized in a kernel of its own
  bool gathers = false;         ///< the tensor group gathers one byte an element
  bool weight_gathers = false;  ///< replicas gather weights in one byte an element

  friend bool operator==(const Fp8Recipe&, const Fp8Recipe&) = default;
};

struct StackSpec {
  std::string name;
  std::string note;

  // Kernels.
  AttentionKernel attention = AttentionKernel::kFlash2;
  bool causal_skipped = true;       ///< the masked half of the scores is not computed
  bool fused_softmax = true;        ///< unfused attention: scale, mask and softmax in one kernel
  int fused_softmax_rows = 0;       ///< the fused softmax needs b a / t to be a multiple of this; 0: it takes any
  bool fused_bias_dropout = true;   ///< bias, dropout and residual in one kernel
  bool fused_activation = true;     ///< bias and activation in one kernel
  bool fp32_norms = false;          ///< a norm's input is cast to fp32, and its output back (autocast)
  bool fused_norm = true;           ///< the residual's gradient is added in the norm's backward kernel
  bool fused_cross_entropy = true;  ///< one pass over the logits forward, one backward; otherwise fp32 passes
  bool fused_accumulation = true;   ///< weight-gradient GEMMs add to the gradient buffer themselves
  std::int64_t vocab_multiple = 1;  ///< the table is padded to a multiple of this times t
  SelectiveKind selective = SelectiveKind::kAttentionCore;
  bool early_stop = false;    ///< recomputation ends with the last tensor that the backward needs
  double memory_traffic = 1;  ///< bytes of memory-bound kernels over the bytes that must cross memory
  Fp8Recipe fp8;
  std::string fp8_recipe;                        ///< the recipe that these figures are of; empty: the stack's own
  std::map<std::string, Fp8Recipe> fp8_recipes;  ///< others, by name
  bool fp8_saved = false;                        ///< under fp8 products keep their inputs in one byte an element

  // Routed experts.
  bool expert_kernels = false;  ///< grouped products are one kernel for each expert
  double expert_half_rows = 0;  ///< rows an expert at which a grouped product reaches half of a plain product's rate
  /// Further factor on that rate where products are quantized or their biases stand apart.
  double expert_gemm_share = 1;
  std::int64_t narrow_expert_ffn = 0;  ///< channels of an expert up to which that factor counts; 0: it always does
  bool weighted_activations = false;  ///< routed tokens are weighted at the activation: their combination keeps nothing
  bool fused_expert_bias = true;      ///< biases and clamps of experts are parts of other kernels
  double expert_imbalance = 1;        ///< tokens of the fullest rank over the mean; a model's capacity_factor bounds it
  bool padded_experts = false;        ///< every expert computes its whole capacity
  ExpertDispatch dispatch = ExpertDispatch::kPerExpert;
  double dispatch_share = 1;  ///< share of the links' rate that this exchange reaches

  // Communication.
  ContextKind context = ContextKind::kRing;
  bool repeated_heads = false;  ///< keys and values are repeated for each query head before they are exchanged
  double tensor_hidden = 0;     ///< share of the tensor group's traffic that runs beside compute
  /// Tensor traffic of a whole backward runs beside the products of the same matrix.
  bool async_tensor_gradients = false;
  double expert_hidden = 0;  ///< share of the all-to-all of experts that runs beside compute
  double data_hidden = 0;    ///< share of the last backward beside which gradients may be reduced
  double gather_hidden = 0;  ///< share of the first forward beside which parameters may be gathered (ZeRO 1)
  // ZeRO 3 copies whole weights behind each gather, and whole gradients before each reduction.
  double gather_copy_bytes = 0;  ///< bytes that compute kernels move for each element of a gathered weight
  double reduce_copy_bytes = 0;  ///< bytes that compute kernels move for each element of a gradient to be reduced
  StageSplit stage_split = StageSplit::kEven;
  bool scattered_messages = true;  ///< between stages each tensor rank sends 1/t of the activation
  /// Fixed device time of each collective of the tensor group, added to the model's time.
  Seconds tensor_collective{0};
  Seconds tensor_step{0};  ///< time added for each step of its ring: n - 1 steps, twice as many for an all-reduce
  bool regathered_inputs = true;  ///< sequence parallelism keeps a product's input divided, and gathers it again
  bool copied_collectives =
      false;  ///< sequence parallelism copies the tensors that it gathers or scatters into another order
  std::int64_t gradient_bytes = 0;  ///< bytes of an element that is reduced; 0: those of the gradient buffer

  // Host.
  Seconds kernel_launch{0};         ///< time of each launch on the host; a pass lasts max(device, host)
  double host_sharpness = 0;        ///< a pass lasts the p-norm of both with this p; 0: the larger
  int layer_launches_forward = 0;   ///< launches of a layer's forward besides the kernels that price/framework lists
  int layer_launches_backward = 0;  ///< launches of a layer's backward besides those kernels
  int expert_launches = 0;          ///< launches that routed experts add to either pass
  bool waits_at_ends = false;       ///< the host waits for the device while the model's ends (table, head, loss) run
  GraphScope graphs = GraphScope::kNone;
  Seconds action_overhead{0};  ///< time added to each compute action of a pipeline

  // The step.
  double step_traffic = 0;  ///< bytes moved for each parameter of the step, besides the optimizer's own traffic

  // Memory, in bytes.
  double logit_bytes = 0;  ///< bytes held at the loss for each logit of the micro-batch
  /// Bytes held for each element of the table when its backward runs, besides the gradient buffer.
  double embedding_gradient_bytes = 0;
  double step_bytes = 0;  ///< bytes that the optimizer holds for each parameter of the step, besides its state
  double norm_bytes = 0;  ///< bytes that the norm of the largest tensor of a rank's step holds for each of its elements
  /// Size of the bucket in which replicas reduce and gather behind the last backward, in units of 2^20 bytes.
  double bucket_mib = 0;
  /// Bytes of a parameter's gradient as computed, which stays beside the gradient buffer. A copy of it in the buffer's
  /// precision is added to the buffer.
  double copied_gradient_bytes = 0;
  double state_bytes = 0;  ///< bytes of the optimizer's state for each parameter; 0: those of the training's optimizer
  double embedding_outputs = 0;  ///< tensors as large as its result that the embedding keeps
  double workspace_mib = 0;      ///< memory that libraries of products hold, in units of 2^20 bytes
  /// Share of a predicted peak that a search keeps free besides: runs took as much more than predicted.
  double memory_headroom = 0;
  /// ZeRO 3 keeps only the shard of the master weights, and gathers 16-bit copies of it.
  bool sharded_masters = false;
  bool replicated_masters = false;  ///< ZeRO 1 and 2 divide only the moments: each rank keeps all master weights
  /// ZeRO 2 and 3 reduce the last micro-batch's gradients; the other micro-batches add to whole ones.
  bool whole_gradients = false;
  bool gathered_logits = false;       ///< each tensor rank has all logits at the loss
  bool tables_stay_gathered = false;  ///< ZeRO 3 gathers the tables of both ends for the whole step
  bool weight_gradients = true;  ///< a product's weight gradient, or a tensor of its shape, stands beside its buffer
  bool kept_weight_gradients = false;  ///< a tensor of each shape of a product's weights stays from step to step
  bool kept_outputs = false;           ///< a stage's output stays until its gradient comes
  bool kept_logits = false;            ///< a pipeline's last stage keeps the logits of all micro-batches for the step
  bool score_buffer = false;           ///< unfused attention: a buffer for one layer's scores stays for all of them
  bool cached_moments = false;         ///< the allocator's reserve counts: a layer's blocks do not serve the loss
  bool copied_context = false;  ///< attention's result is kept a second time, in the order of the next product's rows
  /// Share of the layers' kept tensors that waits in host memory and travels beside compute.
  double offloaded_share = 0;

  StackLimits can;  ///< the layouts that it runs

  std::map<std::string, std::string> sources;  ///< [key]

  friend bool operator==(const StackSpec&, const StackSpec&) = default;
};

/// Returns "unfused", "triton", "flash2", "flash3" or "cudnn".
std::string_view attention_kernel_name(AttentionKernel kernel);
inline constexpr int kAttentionKernelCount = 5;

/// Returns the rows of the vocabulary's table with which that stack trains.
std::int64_t padded_vocab(const StackSpec& stack, std::int64_t vocab, int tensor_parallel);

/// Returns the stack with the figures of that recipe. Throws SpecError naming its recipes if it has no such one.
StackSpec with_fp8_recipe(StackSpec stack, const std::string& recipe);

/// The JSON form has `fp8_gemm_factor`, `fp8_cast_bytes`, `fp8_gathers` and `fp8_weight_gathers`, and `fp8_recipes`
/// with the same figures by recipe ({"rowwise": {"gemm_factor": 0.95, "cast_bytes": 10}}). Besides it has `attention`,
/// `context`, `selective` ("attention", "alternate-products", "norms-and-activations"), `dispatch` ("per-expert",
/// "per-rank"), `stage_split` ("even", "ends-as-layers") and `graphs` ("none", "outside-experts", "iteration") by their
/// names, every member by its name here, times in microseconds ("kernel_launch_us", "tensor_collective_us",
/// "tensor_step_us", "action_overhead_us"), "can" (stack_limits.h), and "sources": {KEY: where its figure stands}, with
/// "can.KEY" for those of `can`. Members that are left out
/// have the defaults above. Reading throws SpecError with the place: an unknown key, a wrong type, a share outside 0 to
/// 1, an imbalance below 1, a negative figure.
StackSpec stack_from_json(const nlohmann::json& json, const std::string& place);
StackSpec parse_stack(std::string_view text, const std::string& file);
nlohmann::ordered_json to_json(const StackSpec& stack);

}}  // namespace plumb::planner
