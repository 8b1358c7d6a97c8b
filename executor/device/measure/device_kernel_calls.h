#pragma once
// One kernel of the planner's list (kernels/layer/kernel_call.h) on a device, on operands whose values do not matter.

#include <cstddef>
#include <cstdint>

#include "executor/device/kernels/device_kernels.h"
#include "kernels/layer.h"

namespace plumb {

inline constexpr std::int64_t kMeasuredVocab = 1024;  ///< of embeddings; the fewest columns of a cross-entropy

/// Memory that is handed out slice after slice, round and round, and numbers of tokens below kMeasuredVocab.
class DeviceOperands {
 public:
  DeviceOperands(std::byte* memory, std::int64_t bytes, const std::int32_t* tokens, const StepNumbers* numbers,
                 std::int64_t element_bytes)
      : memory_(memory), bytes_(bytes), tokens_(tokens), numbers_(numbers), element_bytes_(element_bytes) {}

  std::byte* bytes(std::int64_t count);
  std::byte* stored(std::int64_t elements) { return bytes(elements * element_bytes_); }
  float* floats(std::int64_t elements) { return reinterpret_cast<float*>(bytes(elements * 4)); }
  const std::int32_t* tokens() const { return tokens_; }
  const StepNumbers* numbers() const { return numbers_; }
  std::int64_t element_bytes() const { return element_bytes_; }

 private:
  std::byte* memory_;
  std::int64_t bytes_;
  const std::int32_t* tokens_;
  const StepNumbers* numbers_;
  std::int64_t element_bytes_;
  std::int64_t position_ = 0;
};

/// Whether DeviceKernels has the kind.
bool is_device_kernel(KernelKind kind);

/// How many tokens a call reads; 0: none.
std::int64_t operand_tokens(const KernelCall& call);

/// Bytes that a call's other operands take at most.
std::int64_t operand_bytes(const KernelCall& call, std::int64_t element_bytes);

/// Asserts is_device_kernel().
void enqueue_kernel(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& operands);

}  // namespace plumb
