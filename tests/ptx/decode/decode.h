#pragma once
// Makes a program that can be run from an entry as it is written.

#include "tests/ptx/machine/instruction.h"

namespace plumb::test::ptx {

/// The program's texts point into the module. Throws PtxError, which names line and instruction, if an opcode
/// is not known or an operand does not fit it.
Program decode(const Module& module, const Entry& entry);

}  // namespace plumb::test::ptx
