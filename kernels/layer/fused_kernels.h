#pragma once
// A layer's kernels, pass by pass: as layer_kernels() has them, one for each thing that is computed, or as a device
// calls them whose products take in what follows (executor/device/kernels/device_kernels.h). There
//
//   products       have their bias and the sums of its gradient; the MLP's first one GELU by tanh, too, unless what it
//                  makes is computed again from what it was applied to
//   norms          add the residual before them, where nothing is dropped in between
//   residual sums  and ReLUs have the bias before them; a branch's dropout the residual behind it
//   attention      leaves the gradient of Q, K, V apart, and a copy puts it in their place
//   samples        are copied to where the first layer takes them, their loss's gradient to where the last one does
//   experts        have what the picks weigh in a kernel of its own, in the input's gradient
//
// One rank's kernels: what exchanges add (sums and gathers in shared memory, blocks of an expert group) is not in the
// lists, nor what a context group has in the place of attention.

#include <vector>

#include "kernels/layer/kernel_call.h"
#include "kernels/layer/kinds.h"
#include "kernels/layer/layer_work.h"

namespace plumb { inline namespace kernels {

/// Of one layer, each pass in the order in which they run.
struct LayerKernels {
  std::vector<KernelCall> forward;
  std::vector<KernelCall> input_grad;
  std::vector<KernelCall> weight_grad;
  std::vector<KernelCall> rebuild_selective;  ///< outputs of norms and activations once more
};

/// As layer_kernels() has them.
LayerKernels plain_kernels(const Layer& layer, const LayerWork& work);

/// As such a device calls them. `rebuilds_cheap`: recomputation is selective.
LayerKernels fused_kernels(const Layer& layer, const LayerWork& work, bool rebuilds_cheap);

}}  // namespace plumb::kernels
