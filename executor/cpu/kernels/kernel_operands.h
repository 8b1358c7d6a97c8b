#pragma once
// What one thread's kernels work on while they are measured, and one call of any kernel on it.
//
//   KernelOperands operands;
//   operands.renew();             // not timed: kernels take longer on numbers that no training has
//   call_kernel(call, operands);  // timed

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/layer/layer.h"

namespace plumb { inline namespace executor {

/// Memory that is handed out slice after slice. Slices of one call stay valid until the next call, which goes on behind
/// them and round and round (cold), or begins at the same place again (hot).
class OperandMemory {
 public:
  enum class Use : std::uint8_t { kHot, kCold };
  enum class Values : std::uint8_t { kBothSigns, kPositive };  ///< within 1 of 0
  OperandMemory(Use use, Values values);

  void begin_call();
  float* next(std::int64_t elements);

  /// All that was handed out since the last time holds its first values again.
  void renew();

 private:
  void add_block(std::size_t elements);
  void fill(float* to, std::size_t elements) const;

  Use use_;
  std::vector<float> pattern_;
  std::vector<std::vector<float>> blocks_;
  std::size_t position_ = 0;                            // in the last block
  std::vector<std::pair<float*, std::size_t>> handed_;  // since the last renewal
};

/// As in a training step, what the kernel before has just made is still in the cache (hot), in memory that has been
/// used before; weights, their gradients and what the forward kept are not (cold). Values are those of a training:
/// results of one call that become operands of the next would soon be subnormal, infinite, or where exp() underflows,
/// on which processors take up to three times as long.
struct KernelOperands {
  OperandMemory hot{OperandMemory::Use::kHot, OperandMemory::Values::kBothSigns};
  OperandMemory cold{OperandMemory::Use::kCold, OperandMemory::Values::kBothSigns};
  OperandMemory moments{OperandMemory::Use::kCold, OperandMemory::Values::kPositive};  ///< of an optimizer
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;
  std::vector<std::int32_t> places;
  std::vector<std::int32_t> row_numbers;  ///< 0, 1, ...
  std::vector<std::uint32_t> mask;
  std::vector<float> scratch;
  std::vector<float> rotary;

  KernelOperands();
  void renew();
};

void call_kernel(const KernelCall& call, KernelOperands& with);

}}  // namespace plumb::executor
