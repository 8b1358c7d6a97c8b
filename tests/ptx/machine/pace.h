#pragma once
// Says how many instructions ptxas makes of one of PTX, and how long its result takes.

#include <cstdint>
#include <string_view>

namespace plumb::test::ptx {

/// The unit that a result comes from.
enum class Origin : std::uint8_t {
  kRegister,    ///< it is there at once: ptxas renames a register, or reads a constant
  kArithmetic,  ///< a unit of the warp's scheduler
  kShared,      ///< shared memory, or the registers of other lanes
  kMemory,      ///< a cache or device memory (Found)
};

struct Pace {
  std::uint8_t slots = 1;  ///< instructions that ptxas makes of it
  Origin origin = Origin::kArithmetic;
  bool is_store = false;    ///< nothing behind it begins before it
  bool is_copy = false;     ///< cp.async
  bool is_wait = false;     ///< for copies
  bool is_barrier = false;  ///< of the block
};

/// Returns the pace of an opcode. Integers of 64 bits take two instructions, since registers have 32 bits, and their
/// products three. Divisions of integers are programs, of 24 and 77 instructions on compute capability 9.0.
Pace pace_of(std::string_view opcode);

/// The place where a sector of 32 bytes of device memory is found.
enum class Found : std::uint8_t {
  kL1,      ///< the block has used it
  kL2,      ///< another block has used it
  kDevice,  ///< the launch has not used it
};

/// Return the clocks until a result is there, if nothing else is on its way. Sums, and shared memory: Abdelkhalik et al. 2022,
/// "Demystifying the Nvidia Ampere architecture" (A100). Memory: te42kyfo/gpu-benches, gpu-latency/h100_pcie.txt (an H100 at 1755 MHz).
int clocks_of(Origin origin);
int clocks_of(Found found);

}  // namespace plumb::test::ptx
