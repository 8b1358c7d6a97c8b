#pragma once
// What two machines make of the same kernel: a GPU and the host, say.

#include <cstdint>
#include <optional>
#include <string>

#include "executor/device/device_machine.h"
#include "tests/executor/device/kernels/kernel_cases.h"

namespace plumb::test {

inline constexpr std::int64_t kCaseBytes = std::int64_t{64} << 20;  ///< that a case's tensors take at most

/// A machine on which cases are tried, one rank, one call a replay.
class KernelBench {
 public:
  explicit KernelBench(DeviceMachine& machine);

  std::byte* memory() const { return memory_; }
  /// The tensors after the call. Throws what the machine throws.
  std::vector<std::byte> outcome(const std::string& name, const KernelCase::Call& call,
                                 const std::vector<std::byte>& tensors);

 private:
  DeviceMachine* machine_;
  std::byte* memory_;
};

/// The case on both machines; empty, or what is different between them.
std::string difference_on(KernelBench& ours, KernelBench& reference, const KernelCase& of,
                          std::optional<HalfFormat> half, unsigned seed);

}  // namespace plumb::test
