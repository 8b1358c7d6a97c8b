#pragma once
// The steps of a mixture of experts on the CPU (kernels/layer/emit/experts_part.cpp). T tokens pick k of E experts
// each. The picks are rows in the order of their experts: n rows of this rank's tokens and, with expert parallelism, m
// rows of its own experts. The forward routes, exchanges [n, h] by all-to-all for [m, h], runs the experts, exchanges [m, h]
// for [n, h], and sums with the picks' weights to [T, h]. The backward does the same with gradients; the picks' weights
// go along, and their gradients come back. Rows are counted when the router has run.

#include "executor/layers/host/host_step.h"

namespace plumb { inline namespace executor {

/// True for a kernel that this file runs: one of routes, or of rows that are counted.
bool is_of_experts(const HostStep& of);

/// Runs such a kernel.
void run_expert_kernel(const HostStep& of);
/// Runs an exchange of ExchangeGroup::kExpert.
void run_expert_exchange(const HostStep& of);
/// Gathers the picks of whole sequences from the context group, and places this rank's.
void share_picks(const HostStep& of);

/// Returns memory for a tensor whose rows are counted.
Tensor take_counted(const HostStep& of, const LayerTensor& tensor);

}}  // namespace plumb::executor
