#pragma once
// Enqueues a kernel of the planner's list (kernels/layer/kernel_call.h) on a device, on operands whose values do not
// matter.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/kernels/device_kernels.h"
#include "kernels/layer.h"

namespace plumb { inline namespace executor {

/// Vocabulary of embeddings; the fewest columns of a cross-entropy.
inline constexpr std::int64_t kMeasuredVocab = 1024;

/// Constants on the device that calls read: the integers of operand_integers(), the numbers of a first step, and the
/// maps of 8-bit AdamW (update_constants() in stage/device_update.h).
struct DeviceConstants {
  const std::int32_t* integers = nullptr;
  const StepNumbers* numbers = nullptr;
  const float* maps = nullptr;
};

/// Memory that is handed out slice after slice; it starts again at the beginning when it is used up.
class DeviceOperands {
 public:
  DeviceOperands(std::byte* memory, std::int64_t bytes, const DeviceConstants& constants, std::int64_t element_bytes)
      : memory_(memory), bytes_(bytes), constants_(constants), element_bytes_(element_bytes) {}

  std::byte* bytes(std::int64_t count);
  std::byte* stored(std::int64_t elements) { return bytes(elements * element_bytes_); }
  float* floats(std::int64_t elements) { return reinterpret_cast<float*>(bytes(elements * 4)); }
  const std::int32_t* integers() const { return constants_.integers; }
  const StepNumbers* numbers() const { return constants_.numbers; }
  const float* maps() const { return constants_.maps; }
  std::int64_t element_bytes() const { return element_bytes_; }

 private:
  std::byte* memory_;
  std::int64_t bytes_;
  DeviceConstants constants_;
  std::int64_t element_bytes_;
  std::int64_t position_ = 0;
};

/// Return the number of integers that a call reads, and the integers, with values as in a training: tokens below
/// kMeasuredVocab, the places of the largest elements in their windows, places of rows, bounds of experts' rows.
std::int64_t operand_integer_count(const KernelCall& call);
std::vector<std::int32_t> operand_integers(const KernelCall& call);

/// Returns the most bytes of a call's other operands.
std::int64_t operand_bytes(const KernelCall& call, std::int64_t element_bytes);

/// Enqueues the call. The operands' integers must be those of the call.
void enqueue_kernel(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& operands);

}}  // namespace plumb::executor
