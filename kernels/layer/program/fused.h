#pragma once
// Fusion: the rewrite of a program for a device whose kernels include the operations beside them
// (executor/kernels/device_kernels.h). Each rule joins two steps that follow each other and pass a tensor on:
//
//   dropout, residual sum    the dropout of a branch adds the residual
//   residual sum, norm       the norm first adds the residual, and keeps the sum
//   bias, last residual sum  the sum that is the layer's output adds the bias
//   bias, ReLU               the ReLU adds the bias
//   product, bias            the product adds its bias, and so do the sums of a bias's gradient
//   product, GELU            the product also writes its GELU by tanh

#include "kernels/layer/program/program.h"

namespace plumb { inline namespace kernels {

struct Fusion {
  bool products = false;  ///< products include biases, and sums of their gradients
  bool gelu = false;      ///< products include an activation that is not gated
};

/// Returns the program with joined steps.
LayerProgram fused(LayerProgram program, Fusion fusion);

}}  // namespace plumb::kernels
