#pragma once
// One kernel of the planner's list (kernels/layer/kernel_call.h) on a device, on operands whose values do not matter.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/device/kernels/device_kernels.h"
#include "kernels/layer/layer.h"

namespace plumb { inline namespace executor {

inline constexpr std::int64_t kMeasuredVocab = 1024;  ///< of embeddings; the fewest columns of a cross-entropy

/// What calls read besides, on the device: what operand_integers() says of the call, the numbers of a first step, and
/// 8-bit AdamW's maps (update_constants() in stage/device_update.h).
struct DeviceConstants {
  const std::int32_t* integers = nullptr;
  const StepNumbers* numbers = nullptr;
  const float* maps = nullptr;
};

/// Memory that is handed out slice after slice, round and round.
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

/// What a call reads of integers, such as its kernel finds there in a training: tokens below kMeasuredVocab, where in
/// their windows the largest were, places of rows, bounds of experts' rows. How many they are, and the integers.
std::int64_t operand_integer_count(const KernelCall& call);
std::vector<std::int32_t> operand_integers(const KernelCall& call);

/// Bytes that a call's other operands take at most.
std::int64_t operand_bytes(const KernelCall& call, std::int64_t element_bytes);

/// The operands' integers are the call's.
void enqueue_kernel(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& operands);

}}  // namespace plumb::executor
