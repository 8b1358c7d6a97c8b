#pragma once
// Where a predicted step's time goes, as the mean over the pipeline ranks: what explains a row that is far off.

#include <array>
#include <string_view>

#include "planner/evaluate/evaluation.h"
#include "planner/spec/layout.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

enum class TimeComponent : std::uint8_t {
  kGemm,              ///< products with weights
  kAttention,         ///< fused attention, or its products of activations
  kMemoryBound,       ///< everything else that the device computes
  kHost,              ///< what launching takes longer than the device computes, and the overhead of actions
  kTensorParallel,    ///< blocking collectives of tensor groups
  kContextAndExpert,  ///< the same of context and expert groups
  kDataParallel,      ///< gradients reduced and weights gathered beyond what is hidden
  kOptimizer,
  kBubble,  ///< the rest: waiting in the pipeline, and for its messages
};
inline constexpr int kTimeComponentCount = 9;

/// "compute GEMM", "attention", "memory-bound", "host", "TP", "CP and EP", "DP", "optimizer", "PP bubble".
std::string_view component_name(TimeComponent component);

/// [TimeComponent]; they sum up to the step's time.
using TimeComponents = std::array<Seconds, kTimeComponentCount>;

/// Divides `step_time`, which the evaluated layout takes. Without a stack all of a pass's compute counts as memory-bound or
/// product by its kernels' kind in kernels/layer/layer.h; only training with a stack is told apart here, otherwise
/// compute is one sum under kGemm.
TimeComponents time_components(const Pricing& pricing, const Evaluation& evaluation, Seconds step_time);

}}  // namespace plumb::planner
