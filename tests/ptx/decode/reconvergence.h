#pragma once
// The places where the lanes that a branch divides come together again.

#include <vector>

#include "tests/ptx/machine/instruction.h"

namespace plumb::test::ptx {

/// Sets `reconvergence` of every branch: the first instruction that all ways from it to the end go through,
/// its immediate post-dominator (Fung et al. 2007). The number of instructions stands for the end.
void set_reconvergence(std::vector<Instruction>& instructions);

}  // namespace plumb::test::ptx
