#pragma once
// The time of one kernel call on one device.
//
//   KernelPrices prices = kernel_prices(cluster, training, 1);
//   Seconds t = kernel_time(prices, kernel_call(KernelKind::kGemm, {8192, 4096, 4096, 1, 0}));
//
// The roofline (Williams et al. 2009) has a fixed part:
//   t = kernel_fixed + max(flops / (peak * efficiency), bytes / (bandwidth * memory_efficiency))
// Bytes are the call's elements in the computing precision, except for the weight gradients that a GEMM accumulates
// (gradient precision) and for AdamW (spec/training_spec.h). FLOPs bound only GEMMs (price/kernel/gemm_time.h),
// convolutions as their implicit GEMMs (Chetlur et al. 2014), and attention.
//
// Measured samples of a kernel correct the roofline (price/kernel/shape_correction.h) where the cluster has them.
// Samples of the same variant (GEMM form, kind of norm, gated or not, learned positions or not) come first where there
// are any. They also say how long the host takes to launch a call. The devices of a cluster with samples of fused products run fused_program() (kernels/layer.h).

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "kernels/layer.h"
#include "planner/price/kernel/shape_correction.h"
#include "planner/spec/cluster_spec.h"
#include "planner/spec/training_spec.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

struct KernelPrices {
  DeviceSpec device;
  double peak_flops_per_second = 0;  ///< peak of products of weights, of which gemm_efficiency is reached
  double wide_flops_per_second = 0;  ///< peak of the precision that fp8 training falls back to: bf16
  /// Bytes of an element of a quantized operand, where products of weights, and no others, run in a narrower precision;
  /// 0: nothing is quantized.
  double quantized_bytes = 0;
  std::int64_t element_bytes = 0;
  std::int64_t gradient_bytes = 0;           ///< bytes of one element of the accumulated gradient
  std::int64_t optimizer_traffic_bytes = 0;  ///< bytes that the update of one parameter moves
  KernelKind update = KernelKind::kAdamW;    ///< the optimizer's own kernel where it was measured
  bool fused = false;                        ///< the device's products take in the kernels that follow them
  /// [KernelKind][variant]; empty: roofline.
  std::array<std::map<std::int64_t, std::vector<ShapeCorrection>>, kKernelKindCount> corrections;
  /// [KernelKind] The time in which the host launches a call, while it launches those of the other ranks that it serves.
  std::array<Seconds, kKernelKindCount> launches{};
};

/// Throws SpecError if the stack's fp8 products were faster than the device's peak.
void require_below_peak(const DeviceSpec& device, Precision precision, const StackSpec& stack);

/// Returns the prices of kernels. `busy_ranks` ranks of a node work at once: each kernel uses the samples with the
/// largest number not above that (the smallest number where there is none). Throws SpecError if the device has no peak
/// for the precision (naming those it has), or a sample's time is not above 0.
KernelPrices kernel_prices(const ClusterSpec& cluster, const TrainingSpec& training, int busy_ranks);

Seconds roofline_time(const KernelPrices& prices, const KernelCall& call);
Seconds kernel_time(const KernelPrices& prices, const KernelCall& call);
/// Returns the time in which the host launches the call, as samples of its kind have it: the median over their shapes.
Seconds launch_time(const KernelPrices& prices, const KernelCall& call);

/// Returns the call that updates `elements` of that tensor (Adafactor's: whole rows, as nearly as possible).
KernelCall update_call(const KernelPrices& prices, const ParameterTensor& tensor, std::int64_t elements);

/// Returns the samples of one kernel to use when `busy_ranks` work at once.
std::vector<KernelSample> samples_of(const ClusterSpec& cluster, std::string_view kernel, int busy_ranks);

}}  // namespace plumb::planner
