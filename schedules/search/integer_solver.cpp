#include "schedules/search/integer_solver.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <sstream>

#include <fmt/format.h>

namespace plumb { inline namespace schedules {

void add_term(std::string& program, double factor, std::string_view name) {
  program += fmt::format(" {} {:.17g} {}\n", factor < 0 ? "-" : "+", std::abs(factor), name);
}

// CBC's solution begins with its status, HiGHS's with "Model status" and it, and GLPK's has it as "INTEGER OPTIMAL"
// ("INTEGER NON-OPTIMAL" otherwise).

bool says_optimal(std::string_view solution) {
  return solution.starts_with("Optimal") || solution.starts_with("Model status\nOptimal") ||
         solution.find("INTEGER OPTIMAL") != std::string_view::npos;
}

bool says_infeasible(std::string_view solution) {
  return solution.starts_with("Infeasible") || solution.starts_with("Integer infeasible") ||
         solution.starts_with("Model status\nInfeasible") || solution.find("INTEGER EMPTY") != std::string_view::npos;
}

std::vector<std::pair<std::string, double>> values_in(std::string_view solution) {
  std::vector<std::pair<std::string, double>> values;
  std::istringstream words{std::string(solution)};
  std::string name;
  for (std::string word; words >> word;) {
    if (std::isalpha(static_cast<unsigned char>(word.front())) != 0) {
      name = word;
      continue;
    }
    double value = 0;
    const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (name.empty() || fault != std::errc{} || end != word.data() + word.size()) continue;
    values.emplace_back(std::move(name), value);
    name.clear();
  }
  return values;
}

std::optional<double> bound_in(std::string_view log) {
  std::optional<double> bound;
  std::size_t last = 0;
  for (const std::string_view words : {"Lower bound:", "Dual bound", ">="}) {  // CBC's, HiGHS's, GLPK's
    const std::size_t found = log.rfind(words);
    if (found == std::string_view::npos || (bound && found < last)) continue;
    const std::size_t start = log.find_first_not_of(' ', found + words.size());
    if (start == std::string_view::npos) continue;
    double value = 0;
    const auto [end, fault] = std::from_chars(log.data() + start, log.data() + log.size(), value);
    if (fault != std::errc{} || !std::isfinite(value)) continue;
    bound = value;
    last = found;
  }
  return bound;
}

}}  // namespace plumb::schedules
