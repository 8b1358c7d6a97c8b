#pragma once
// What one kernel call lasts on one device.
//
//   KernelPrices prices = kernel_prices(cluster, training, 1);
//   Seconds t = kernel_time(prices, kernel_call(KernelKind::kGemm, {8192, 4096, 4096, 1, 0}));
//
// Roofline (Williams et al. 2009) with a fixed part:
//   t = kernel_fixed + max(flops / (peak * efficiency), bytes / (bandwidth * memory_efficiency))
// Bytes are the call's elements in the computing precision, but for the weight gradients that a GEMM accumulates
// (gradient precision) and for AdamW (spec/training_spec.h). Only GEMMs (price/kernel/gemm_time.h), convolutions as
// their implicit GEMMs (Chetlur et al. 2014), and attention are bounded by FLOPs.
//
// Measured samples of a kernel, where the cluster has them, correct the roofline
// (price/kernel/shape_correction.h), by those of the same variant (GEMM form, kind of norm, gated or not, learned
// positions or not) where there are any. A cluster with samples of fused products is of devices that run
// fused_kernels() (kernels/layer/fused_kernels.h).

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "kernels/layer/layer.h"
#include "planner/price/kernel/shape_correction.h"
#include "planner/spec/cluster_spec.h"
#include "planner/spec/training_spec.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

struct KernelPrices {
  DeviceSpec device;
  double peak_flops_per_second = 0;  ///< of products of weights; gemm_efficiency of it is reached
  double wide_flops_per_second = 0;  ///< of the precision that fp8 training falls back to: bf16
  bool quantized = false;            ///< fp8: products of weights, and no others, run in a narrower precision
  std::int64_t element_bytes = 0;
  std::int64_t gradient_bytes = 0;           ///< of one element of the accumulated gradient
  std::int64_t optimizer_traffic_bytes = 0;  ///< of one parameter's update
  KernelKind update = KernelKind::kAdamW;    ///< the optimizer's own where it was measured
  bool fused = false;                        ///< the device's products take in what follows them
  /// [KernelKind][variant]; empty: roofline
  std::array<std::map<std::int64_t, std::vector<ShapeCorrection>>, kKernelKindCount> corrections;
};

/// `busy_ranks` is how many ranks of a node work at once: of each kernel the samples with the largest number not above
/// it are used (where there is none, those with the smallest). Throws SpecError if the device has no peak for the
/// precision (naming those it has), or a sample's time is not above 0.
KernelPrices kernel_prices(const ClusterSpec& cluster, const TrainingSpec& training, int busy_ranks);

Seconds roofline_time(const KernelPrices& prices, const KernelCall& call);
Seconds kernel_time(const KernelPrices& prices, const KernelCall& call);

/// One update of `elements` of that tensor (Adafactor's: of whole rows, as near as they come).
KernelCall update_call(const KernelPrices& prices, const ParameterTensor& tensor, std::int64_t elements);

/// The samples of one kernel to use when `busy_ranks` work at once.
std::vector<KernelSample> samples_of(const ClusterSpec& cluster, std::string_view kernel, int busy_ranks);

}}  // namespace plumb::planner
