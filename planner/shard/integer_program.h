#pragma once
// An assignment as an integer program, for a solver of such programs (CBC, HiGHS, GLPK).
//
// A variable x is 1 where a choice is made, and y where two choices are made together (Zheng et al. 2022, section 4.2,
// with y tied to x by sums, as in the local polytope of Wainwright & Jordan 2008):
//   least sum c_i(k) x_i(k) + sum c_ij(k, l) y_ij(k, l)   with   sum_k x_i(k) = 1,   sum_l y_ij(k, l) = x_i(k),
//   sum_k y_ij(k, l) = x_j(l)

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/shard/assignment.h"
#include "schedules/search/integer_solver.h"

namespace plumb { inline namespace planner {

/// Returns the program in CPLEX's LP form.
std::string integer_program(const AssignmentProblem& problem);

/// Returns the choices in the text of a solver's solution; nothing if a variable has none.
std::optional<std::vector<int>> choices_in(const AssignmentProblem& problem, std::string_view text);

/// Returns an assignment that is at least as good as the given one, which was not exact: the solver's, with its cost as
/// the bound if its text says that it is optimal, and otherwise with the larger of both bounds.
Assignment solved(const AssignmentProblem& problem, const Assignment& given, const SolverAnswer& answer);

}}  // namespace plumb::planner
