#pragma once
// A solver of integer programs (CBC, HiGHS, GLPK) is asked with a program in CPLEX's LP form. It answers with the file of
// its solution, which has lines with the name of a variable and its value.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plumb { inline namespace schedules {

/// A solver by its name, with the file of its solution and what it printed on its way.
struct SolverAnswer {
  std::string solver;
  std::string text;
  std::string log;
};

/// Runs a program in CPLEX's LP form through a solver; nothing where there is none, or it found no answer in time.
using IntegerSolver = std::function<std::optional<SolverAnswer>(const std::string& program)>;

/// Appends one term of a program, a line each, since solvers bound the length of a line.
void add_term(std::string& program, double factor, std::string_view name);

/// These return true if a solution is proved optimal, or it is proved that there is none.
bool says_optimal(std::string_view solution);
bool says_infeasible(std::string_view solution);

/// Returns the names of variables in a solution, and other words, with the number that stands behind each.
std::vector<std::pair<std::string, double>> values_in(std::string_view solution);

/// Returns the last bound that a solver printed, below which no solution is; nothing if it printed none.
std::optional<double> bound_in(std::string_view log);

}}  // namespace plumb::schedules
