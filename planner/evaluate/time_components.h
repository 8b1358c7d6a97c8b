#pragma once
// The parts of a predicted step's time, as means over the pipeline ranks. They explain a row with a large error.

#include <array>
#include <string_view>

#include "planner/evaluate/evaluation.h"
#include "planner/spec/layout.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

enum class TimeComponent : std::uint8_t {
  kGemm,              ///< products with weights
  kAttention,         ///< fused attention, or its products of activations
  kMemoryBound,       ///< all other kernels
  kHost,              ///< launches that take longer than the device computes, and the overhead of actions
  kTensorParallel,    ///< blocking collectives of tensor groups
  kContextAndExpert,  ///< blocking collectives of context and expert groups
  kDataParallel,      ///< gradients reduced and weights gathered beyond the hidden part
  kOptimizer,
  kBubble,  ///< the rest: waiting in the pipeline, and for its messages
};
inline constexpr int kTimeComponentCount = 9;

/// Returns "compute GEMM", "attention", "memory-bound", "host", "TP", "CP and EP", "DP", "optimizer" or "PP bubble".
std::string_view component_name(TimeComponent component);

/// [TimeComponent]; the components sum up to the step's time.
using TimeComponents = std::array<Seconds, kTimeComponentCount>;

/// Returns the components of an evaluated layout whose step takes `step_time`. Only training with a stack tells the kinds
/// of compute apart; without a stack all compute of the passes counts under kGemm.
TimeComponents time_components(const Pricing& pricing, const Evaluation& evaluation, Seconds step_time);

}}  // namespace plumb::planner
