#pragma once
// A solver of integer programs that this machine has: CBC, HiGHS or GLPK (Debian's packages coinor-cbc and glpk-utils;
// HiGHS is `highs`).

#include <cstdint>
#include <string>

#include "schedules/search/integer_solver.h"
#include "schedules/time.h"

namespace plumb { inline namespace tools {

struct SolverLimits {
  Seconds patience{500'000};  ///< at most; a solver that takes twice as long is killed
  /// Parts of a program (nodes) that are looked at, on one core; 0: any number. The answer is then the same each time,
  /// unless the patience ends. GLPK knows no such limit, and is not asked.
  std::int64_t nodes = 0;
};

/// Returns a function that asks the first of cbc, highs and glpsol that is on PATH, each within the limits. The programs
/// go through files in the folder for temporary ones, which are deleted.
IntegerSolver machine_solver(const SolverLimits& limits);

/// Returns the name of the first solver on PATH that counts nodes, empty if there is none.
std::string node_counting_solver();

}}  // namespace plumb::tools
