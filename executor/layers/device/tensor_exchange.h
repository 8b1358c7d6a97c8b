#pragma once
// The exchanges of a tensor group inside a layer's pass (Shoeybi et al. 2019; Korthikanti et al. 2022 where the ranks
// divide the rows between products).

#include "executor/layers/device/step_call.h"

namespace plumb { inline namespace executor {

/// Enqueues an exchange step of ExchangeGroup::kTensor.
void enqueue_tensor_exchange(const StepCall& of);

}}  // namespace plumb::executor
