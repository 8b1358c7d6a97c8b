#include "planner/shard/integer_program.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace plumb { inline namespace planner {
namespace {

std::string choice_name(std::size_t variable, std::size_t choice) {
  return fmt::format("x{}_{}", variable, choice);
}

std::string pair_name(std::size_t pair, std::size_t first, std::size_t second) {
  return fmt::format("y{}_{}_{}", pair, first, second);
}

/// Returns the variable and the choice that a name stands for.
std::optional<std::pair<std::size_t, std::size_t>> named_choice(const std::string& word) {
  std::size_t variable = 0, choice = 0;
  const char* end = word.data() + word.size();
  if (word.size() < 4 || word[0] != 'x') return std::nullopt;
  const auto [middle, fault] = std::from_chars(word.data() + 1, end, variable);
  if (fault != std::errc{} || middle == end || *middle != '_') return std::nullopt;
  const auto [last, other] = std::from_chars(middle + 1, end, choice);
  if (other != std::errc{} || last != end) return std::nullopt;
  return std::pair{variable, choice};
}

/// Choices that are not allowed cost infinity, which a program does not know.
bool allowed(double cost) {
  return std::isfinite(cost);
}

}  // namespace

std::string integer_program(const AssignmentProblem& problem) {
  std::string least = "Minimize\n cost:\n", rows = "Subject To\n", fixed = "Bounds\n", whole = "Binaries\n";
  for (std::size_t i = 0; i < problem.costs.size(); ++i) {
    rows += fmt::format(" one{}:\n", i);
    for (std::size_t k = 0; k < problem.costs[i].size(); ++k) {
      const std::string name = choice_name(i, k);
      add_term(rows, 1, name);
      add_term(least, allowed(problem.costs[i][k]) ? problem.costs[i][k] : 0, name);
      if (!allowed(problem.costs[i][k])) fixed += fmt::format(" {} = 0\n", name);
      whole += fmt::format(" {}\n", name);
    }
    rows += " = 1\n";
  }
  for (std::size_t pair = 0; pair < problem.pairs.size(); ++pair) {
    const PairCost& of = problem.pairs[pair];
    const std::size_t first = problem.costs[of.first].size(), second = problem.costs[of.second].size();
    for (std::size_t k = 0; k < first; ++k)
      for (std::size_t l = 0; l < second; ++l) {
        const double cost = of.costs[k * second + l];
        add_term(least, allowed(cost) ? cost : 0, pair_name(pair, k, l));
        if (!allowed(cost)) fixed += fmt::format(" {} = 0\n", pair_name(pair, k, l));
      }
    for (std::size_t k = 0; k < first; ++k) {
      rows += fmt::format(" a{}_{}:\n", pair, k);
      for (std::size_t l = 0; l < second; ++l) add_term(rows, 1, pair_name(pair, k, l));
      add_term(rows, -1, choice_name(of.first, k));
      rows += " = 0\n";
    }
    for (std::size_t l = 0; l < second; ++l) {
      rows += fmt::format(" b{}_{}:\n", pair, l);
      for (std::size_t k = 0; k < first; ++k) add_term(rows, 1, pair_name(pair, k, l));
      add_term(rows, -1, choice_name(of.second, l));
      rows += " = 0\n";
    }
  }
  return least + rows + fixed + whole + "End\n";
}

std::optional<std::vector<int>> choices_in(const AssignmentProblem& problem, std::string_view text) {
  std::vector<int> choices(problem.costs.size(), -1);
  constexpr double kHalf = 0.5;
  for (const auto& [name, value] : values_in(text)) {
    const auto named = named_choice(name);
    if (!named || value <= kHalf) continue;
    const auto [variable, choice] = *named;
    if (variable < choices.size() && choice < problem.costs[variable].size()) {
      choices[variable] = static_cast<int>(choice);
    }
  }
  if (std::ranges::find(choices, -1) != choices.end()) return std::nullopt;
  return choices;
}

Assignment solved(const AssignmentProblem& problem, const Assignment& given, const SolverAnswer& answer) {
  Assignment best = given;
  best.bound = std::min(best.cost, std::max(best.bound, bound_in(answer.log).value_or(best.bound)));
  const std::optional<std::vector<int>> choices = choices_in(problem, answer.text);
  if (!choices) return best;
  const double cost = cost_of(problem, *choices);
  if (cost < best.cost) {
    best.cost = cost;
    best.choices = *choices;
  }
  best.bound = std::min(best.bound, best.cost);
  if (!says_optimal(answer.text)) return best;
  best.exact = true;
  best.bound = best.cost;
  return best;
}

}}  // namespace plumb::planner
