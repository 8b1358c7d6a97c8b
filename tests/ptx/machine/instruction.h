#pragma once
// An instruction as it is run: the function that does it for the lanes of a warp, and where its operands lie
// in the warp's registers.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/ptx/machine/pace.h"
#include "tests/ptx/read/module.h"

namespace plumb::test::ptx {

class Warp;
struct Instruction;

inline constexpr int kWarpLanes = 32;
using LaneMask = std::uint32_t;  ///< a bit for each lane
inline constexpr LaneMask kAllLanes = ~LaneMask{0};

/// Does the instruction for the lanes of the mask, which has one at least.
using Run = void (*)(Warp&, const Instruction&, LaneMask);

enum class Space : std::uint8_t { kGeneric, kGlobal, kShared, kLocal, kParameter };

/// Bytes that are read or written: base register + offset.
struct Address {
  std::uint32_t base = 0;  ///< of the register, in the registers' bytes
  bool is_wide = true;     ///< 64 bits; else 32
  std::int64_t offset = 0;
};

enum class Flow : std::uint8_t { kNext, kBranch, kExit };

/// The unit that an instruction keeps busy, as far as ptxas cannot do without it (work.h).
enum class Unit : std::uint8_t {
  kNone,        ///< ptxas may leave the instruction out
  kIssue,       ///< a scheduler alone
  kFp32,        ///< sums, differences and fused products of fp32
  kSpecial,     ///< ex2, lg2, rcp, roots and their like
  kTensor,      ///< mma
  kShared,      ///< shared memory: ld and st
  kSharedCopy,  ///< shared memory: cp.async
  kSharedRows,  ///< shared memory: ldmatrix
};

/// Every register has a lane's values behind each other: 32 times 2, 4 or 8 bytes. A predicate is a LaneMask.
struct Instruction {
  static constexpr std::uint32_t kNoGuard = ~std::uint32_t{0};

  Run run = nullptr;
  Flow flow = Flow::kNext;
  Unit unit = Unit::kNone;
  Pace pace;
  Space space = Space::kGeneric;  ///< of the first address
  std::uint8_t access_bytes = 0;  ///< of ld and st: bytes of a lane
  bool is_aligned = false;        ///< all lanes of the warp that have not exited must be here together
  bool is_guard_negated = false;
  std::uint32_t guard = kNoGuard;            ///< place of the predicate
  std::array<std::uint32_t, 14> at{};        ///< places of the operands that are registers or constants, in order
  std::array<std::uint8_t, 14> bytes{};      ///< bytes of a lane of each of them
  std::uint8_t values = 0, results = 0;      ///< operands in `at`, and those of them, the first, that are written
  std::array<Address, 2> address{};          ///< operands that are addresses, in order
  std::uint8_t addresses = 0;                ///< in `address`
  std::array<std::uint32_t, 3> immediate{};  ///< operands that are always numbers, in order
  int target = 0;                            ///< instruction that a branch goes to
  int reconvergence = 0;                     ///< instruction where the two ways of a branch meet; the size: none
  int line = 0;
  std::string_view text;
};

/// A 32-bit register that the hardware fills in, such as %tid.x.
struct SpecialRegister {
  std::string_view name;
  std::uint32_t at = 0;
};

/// An entry that has been decoded.
struct Program {
  std::string_view name;
  std::vector<Instruction> instructions;
  std::vector<std::byte> registers;  ///< of a warp at its begin, with the constants
  std::vector<SpecialRegister> specials;
  std::int64_t parameter_bytes = 0;
  std::int64_t static_shared_bytes = 0;  ///< the launch's own shared bytes lie behind them
  std::int64_t local_bytes = 0;          ///< of a thread
};

}  // namespace plumb::test::ptx
