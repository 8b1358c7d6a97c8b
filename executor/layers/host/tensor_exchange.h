#pragma once
// The exchanges of a tensor group inside a layer's pass (Shoeybi et al. 2019; Korthikanti et al. 2022 where the ranks
// divide the rows between products in contiguous blocks).

#include "executor/layers/host/host_step.h"

namespace plumb { inline namespace executor {

/// Runs an exchange step of ExchangeGroup::kTensor.
void run_tensor_exchange(const HostStep& of);

}}  // namespace plumb::executor
