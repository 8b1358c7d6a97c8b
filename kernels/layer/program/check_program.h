#pragma once
// Checks that a layer program is sound. Each function returns one sentence about the first fault, which names the step,
// or an empty text.

#include <span>
#include <string>
#include <vector>

#include "kernels/layer/program/program.h"

namespace plumb { inline namespace kernels {

/// Checks the list of one rank:
/// - what a step reads has been written, and it is not lost to another tensor that has taken its place;
/// - a step writes over a value only if it reads it, or no step reads it any more;
/// - a product's operands have the shape of its call;
/// - each parameter is read by the forward, and gets a gradient;
/// - what the layer hands over has been written.
std::string program_fault(const LayerProgram& program);

/// Checks that the programs of a group's ranks make the same exchanges there, in the same order.
std::string exchange_fault(std::span<const LayerProgram> ranks, ExchangeGroup group);

/// Checks that the backward needs only what is kept and what recomputed_steps() make again from it. forgotten: [tensor]
std::string recomputation_fault(const LayerProgram& program, const std::vector<bool>& forgotten);

}}  // namespace plumb::kernels
