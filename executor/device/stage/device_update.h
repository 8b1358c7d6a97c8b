#pragma once
// Which of a device's kernels makes the update of an optimizer, and what state it keeps.

#include "executor/device/kernels/device_kernels.h"
#include "kernels/optimizer.h"

namespace plumb {

/// AdamW, SGD with momentum, Lion: those that update each element by itself, with fp32 state.
bool has_device_update(const OptimizerSettings& optimizer);

/// Numbers that it keeps of an element. Asserts has_device_update(), as all below do.
int moments_of(const OptimizerSettings& optimizer);

/// 1 - beta^step of its moments, where it corrects them; 1 otherwise. `step` counts from 1.
StepNumbers update_numbers(const OptimizerSettings& optimizer, std::int64_t step);

/// Enqueues the update of parameters of which weight decay spares all, or none.
void enqueue_update(DeviceKernels& kernels, const OptimizerSettings& optimizer, bool decays,
                    const DeviceUpdate& update);

}  // namespace plumb
