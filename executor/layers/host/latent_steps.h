#pragma once
// The steps of latent attention on the CPU that other blocks do not have (kernels/layer/emit/latent_attention.cpp).

#include "executor/layers/host/host_step.h"

namespace plumb { inline namespace executor {

/// True if the kernel is one of these.
bool is_latent(const HostStep& of);

/// Runs it: heads joined or split.
void run_latent_kernel(const HostStep& of);

}}  // namespace plumb::executor
