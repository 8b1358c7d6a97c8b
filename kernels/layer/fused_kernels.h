#pragma once
// A layer's kernels, pass by pass. plain_kernels() lists one kernel for each thing that is computed, as layer_kernels()
// does. fused_kernels() lists the calls of a device whose products include the operations behind them
// (executor/device/kernels/device_kernels.h):
//
//   products       include their bias and the sums of its gradient; the MLP's first product also includes GELU by tanh,
//                  unless its output is recomputed from its input
//   norms          include the addition of the residual before them, where no dropout lies in between
//   residual sums  and ReLUs include the bias before them; a branch's dropout includes the residual behind it
//   attention      writes the gradient of Q, K and V to a tensor of its own, and a copy moves it to its place
//   samples        are copied to the first layer's input, and the gradient of their loss to the last layer's output
//   experts        weigh the picks in a kernel of its own, in the input's gradient
//
// The lists are those of one rank. They leave out the kernels that exchanges add (sums and gathers in shared memory,
// blocks of an expert group) and those that replace attention in a context group.
// lists, nor what a context group has in the place of attention.

#include <vector>

#include "kernels/layer/kernel_call.h"
#include "kernels/layer/kinds.h"
#include "kernels/layer/layer_work.h"

namespace plumb { inline namespace kernels {

/// The kernels of one layer, in the order in which each pass runs them.
struct LayerKernels {
  std::vector<KernelCall> forward;
  std::vector<KernelCall> input_grad;
  std::vector<KernelCall> weight_grad;
  std::vector<KernelCall> rebuild_selective;  ///< norms and activations, for selective recomputation
};

/// Returns the lists of layer_kernels().
LayerKernels plain_kernels(const Layer& layer, const LayerWork& work);

/// Returns the lists of a device with fused products. `rebuilds_cheap`: recomputation is selective.
LayerKernels fused_kernels(const Layer& layer, const LayerWork& work, bool rebuilds_cheap);

}}  // namespace plumb::kernels
