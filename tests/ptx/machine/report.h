#pragma once
// The faults of kernels that have run.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ptx/machine/instruction.h"

namespace plumb::test::ptx {

enum class FaultKind : std::uint8_t {
  kOutOfBounds,   ///< an access outside of every buffer
  kMisaligned,    ///< an address that is no multiple of the bytes accessed
  kUnwritten,     ///< shared memory read before it is written
  kPendingCopy,   ///< shared memory used before the wait for the cp.async that fills it
  kRace,          ///< two threads, one of which writes, with no barrier between
  kDivergence,    ///< lanes elsewhere at an instruction that needs them
  kStuckBarrier,  ///< a barrier that some threads never reach
};

/// The first of the faults of a kind at an instruction.
struct Fault {
  FaultKind kind = FaultKind::kOutOfBounds;
  std::string kernel;
  int line = 0;
  std::string text;  ///< a sentence with the instruction, block and thread
};

class Report {
 public:
  /// The faults that follow are this kernel's.
  void begin(std::string_view kernel) { kernel_ = kernel; }
  /// Says "<instruction> at line <line>: thread <thread> of block <block> <what>".
  void add(FaultKind kind, const Instruction& in, std::uint32_t block, std::uint32_t thread, const std::string& what);

  const std::vector<Fault>& faults() const { return faults_; }

 private:
  std::string kernel_;
  std::vector<Fault> faults_;
};

}  // namespace plumb::test::ptx
