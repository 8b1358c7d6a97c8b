#pragma once
// Which of a device's kernels makes the update of an optimizer, and the numbers of the step that it reads.

#include <span>
#include <vector>

#include "executor/device/kernels/device_kernels.h"
#include "executor/device/stage/optimizer_places.h"
#include "kernels/optimizer.h"

namespace plumb { inline namespace executor {

/// What the update of step `step`, counted from 1, reads: 1 - beta^step of AdamW's moments, Adafactor's decay; the
/// others' are constant.
StepNumbers update_numbers(const OptimizerSettings& optimizer, std::int64_t step);

/// Constants that the update reads on the device: the maps of 8-bit AdamW's codes; of others none.
std::vector<float> update_constants(const OptimizerSettings& optimizer);

/// Where all of a part is on the device while it is updated.
struct PartMemory {
  std::byte* weights = nullptr;  ///< stored; may be master itself in fp32
  float* master = nullptr;
  float* gradients = nullptr;
  std::vector<std::byte*> fields;             ///< as the part lists them
  simt::AdafactorSquares* squares = nullptr;  ///< scratch of Adafactor
  const float* constants = nullptr;           ///< update_constants()
  const StepNumbers* numbers = nullptr;
};

/// Enqueues the update of a part.
void enqueue_update(DeviceKernels& kernels, const OptimizerSettings& optimizer, const UpdatePart& part,
                    const PartMemory& memory);

}}  // namespace plumb::executor
