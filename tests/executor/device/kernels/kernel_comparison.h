#pragma once
// The results of two machines for the same kernel: of a GPU and of the host, say.

#include <cstdint>
#include <optional>
#include <string>

#include "executor/device/device_machine.h"
#include "tests/executor/device/kernels/kernel_cases.h"

namespace plumb::test {

inline constexpr std::int64_t kCaseBytes = std::int64_t{64} << 20;  ///< most bytes of a case's tensors

/// A machine on which cases are tried, one rank, one call a replay.
class KernelBench {
 public:
  explicit KernelBench(DeviceMachine& machine);

  std::byte* memory() const { return memory_; }
  /// Returns the tensors after the call. Throws what the machine throws.
  std::vector<std::byte> outcome(const std::string& name, const KernelCase::Call& call,
                                 const std::vector<std::byte>& tensors);

 private:
  DeviceMachine* machine_;
  std::byte* memory_;
};

/// Runs the case on both machines. Returns the differences; empty if there are none.
std::string difference_on(KernelBench& ours, KernelBench& reference, const KernelCase& of,
                          std::optional<HalfFormat> half, unsigned seed);

}  // namespace plumb::test
