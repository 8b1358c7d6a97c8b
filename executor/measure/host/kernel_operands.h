#pragma once
// The operands of one thread's kernels while they are measured, and one call of any kernel on them.
//
//   KernelOperands operands;
//   operands.renew();             // not timed: kernels take longer on numbers that no training has
//   call_kernel(call, operands);  // timed

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/layer.h"

namespace plumb { inline namespace executor {

/// Memory that is handed out slice after slice. Slices of one call stay valid until the next call. Cold memory goes on
/// behind the last call's slices, round and round. Hot memory begins at the same place again.
class OperandMemory {
 public:
  enum class Use : std::uint8_t { kHot, kCold };
  enum class Values : std::uint8_t { kBothSigns, kPositive };  ///< values between -1 and 1, or between 0 and 1
  OperandMemory(Use use, Values values);

  void begin_call();
  float* next(std::int64_t elements);

  /// Gives all memory that was handed out since the last renewal its first values again.
  void renew();

 private:
  void add_block(std::size_t elements);
  void fill(float* to, std::size_t elements) const;

  Use use_;
  std::vector<float> pattern_;
  std::vector<std::vector<float>> blocks_;
  std::size_t position_ = 0;                            // next element in the last block
  std::vector<std::pair<float*, std::size_t>> handed_;  // slices handed out since the last renewal
};

/// Operands in the same cache state as in a training step. Tensors that the kernel before has just made are still in
/// the cache (hot), in memory that has been used before. Weights, their gradients and tensors that the forward kept are
/// not (cold). Values are those of a training: a result of one call that becomes an operand of the next would soon be
/// subnormal, infinite, or in the range where exp() underflows, and processors take up to three times as long on such
/// numbers.
struct KernelOperands {
  OperandMemory hot{OperandMemory::Use::kHot, OperandMemory::Values::kBothSigns};
  OperandMemory cold{OperandMemory::Use::kCold, OperandMemory::Values::kBothSigns};
  OperandMemory moments{OperandMemory::Use::kCold, OperandMemory::Values::kPositive};  ///< moments of an optimizer
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
