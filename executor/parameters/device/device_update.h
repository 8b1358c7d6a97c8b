#pragma once
// The kernel that makes an optimizer's update on a device, and the numbers of the step that it reads.

#include <span>
#include <vector>

#include "executor/kernels/device_kernels.h"
#include "executor/parameters/device/optimizer_places.h"
#include "kernels/optimizer.h"

namespace plumb { inline namespace executor {

/// Returns the numbers that the update of step `step`, counted from 1, reads: 1 - beta^step of AdamW's moments,
/// Adafactor's decay. Those of other optimizers are constant.
StepNumbers update_numbers(const OptimizerSettings& optimizer, std::int64_t step);

/// Returns the constants that the update reads on the device: the maps of 8-bit AdamW's codes. Others have none.
std::vector<float> update_constants(const OptimizerSettings& optimizer);

/// Addresses of a part on the device while it is updated.
struct PartMemory {
  std::byte* weights = nullptr;  ///< as they are stored; `master` itself in fp32
  float* master = nullptr;
  float* gradients = nullptr;
  std::vector<std::byte*> fields;             ///< in the order of UpdatePart::fields
  simt::AdafactorSquares* squares = nullptr;  ///< scratch of Adafactor
  const float* constants = nullptr;           ///< update_constants()
  const StepNumbers* numbers = nullptr;
};

/// Enqueues the update of a part.
void enqueue_update(DeviceKernels& kernels, const OptimizerSettings& optimizer, const UpdatePart& part,
                    const PartMemory& memory);

}}  // namespace plumb::executor
