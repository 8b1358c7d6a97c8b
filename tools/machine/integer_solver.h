#pragma once
// A solver of integer programs that this machine has: CBC, HiGHS or GLPK (Debian's packages coinor-cbc and glpk-utils;
// HiGHS is `highs`).

#include "planner/shard/integer_program.h"
#include "schedules/time.h"

namespace plumb { inline namespace tools {

/// Returns a function that asks the first of cbc, highs and glpsol that is on PATH, each for at most `patience`. The
/// programs go through files in the folder for temporary ones, which are deleted.
IntegerSolver machine_solver(Seconds patience);

}}  // namespace plumb::tools
