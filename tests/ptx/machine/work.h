#pragma once
// The work of a kernel that ptxas cannot leave out, and the unit of a multiprocessor that each part of it
// keeps busy.

#include <cstdint>
#include <string_view>

#include "tests/ptx/machine/instruction.h"

namespace plumb::test::ptx {

class Warp;

/// Amounts for a whole grid. Moves, integers, predicates, and products that a sum may take in (mul) are left
/// out, since ptxas may do without them. Device memory counts each byte once that is read before the kernel
/// writes it, and once that is written, as if caches were empty before and as large as one likes.
struct Work {
  std::int64_t issued = 0;          ///< instructions of a warp
  std::int64_t fp32 = 0;            ///< of these, sums, differences and fused products of fp32
  std::int64_t special = 0;         ///< of these, ex2, lg2, rcp, roots and their like
  double tensor_flops = 0;          ///< of mma; multiply and add count as two
  std::int64_t shared_passes = 0;   ///< passes of 128 bytes through shared memory, without conflicts of banks
  std::int64_t bank_conflicts = 0;  ///< passes that come to these where lanes use different words of a bank
  std::int64_t memory_bytes = 0;    ///< of device memory
};

/// Adds an instruction of a warp.
void count_instruction(Work& work, Warp& warp, const Instruction& in, LaneMask lanes);

/// Returns the unit that an opcode keeps busy.
Unit unit_of(std::string_view opcode);

}  // namespace plumb::test::ptx
