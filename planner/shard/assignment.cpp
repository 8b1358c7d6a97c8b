#include "planner/shard/assignment.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace plumb { inline namespace planner {
namespace {

/// Costs by the choices of some variables, in ascending order; the last one's choice runs fastest.
struct Table {
  std::vector<int> variables;
  std::vector<double> costs;
};

class Elimination {
 public:
  Elimination(const AssignmentProblem& problem, std::size_t most_entries) : problem_(problem), most_(most_entries) {
    for (const std::vector<double>& costs : problem.costs) sizes_.push_back(costs.size());
    tables_of_.resize(sizes_.size());
    neighbours_.resize(sizes_.size());
    for (std::size_t i = 0; i < problem.costs.size(); ++i)
      add_table({.variables = {static_cast<int>(i)}, .costs = problem.costs[i]});
    for (const PairCost& pair : problem.pairs) {
      add_table(table_of(pair));
      neighbours_[pair.first].insert(pair.second);
      neighbours_[pair.second].insert(pair.first);
    }
    for (int variable = 0; variable < std::ssize(sizes_); ++variable) {
      entries_.push_back(entries_of(neighbours_[variable]));
      left_.emplace(entries_.back(), variable);
    }
  }

  Assignment run() {
    Assignment answer;
    while (!left_.empty()) {
      const int variable = left_.begin()->second;
      left_.erase(left_.begin());
      answer.exact = eliminate(variable) && answer.exact;
    }
    answer.bound = constant_;
    answer.largest_table = largest_;
    answer.choices = decoded();
    if (!answer.exact) improve(answer.choices);
    answer.cost = cost_of(problem_, answer.choices);
    if (answer.exact) answer.bound = answer.cost;
    return answer;
  }

 private:
  /// The tables that met when a variable was eliminated.
  struct Bucket {
    int variable = 0;
    std::vector<Table> tables;
  };

  Table table_of(const PairCost& pair) const {
    if (pair.first < pair.second) return {.variables = {pair.first, pair.second}, .costs = pair.costs};
    Table turned{.variables = {pair.second, pair.first}, .costs = std::vector<double>(pair.costs.size())};
    const std::size_t rows = sizes_[pair.first], columns = sizes_[pair.second];
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t k = 0; k < columns; ++k) turned.costs[k * rows + i] = pair.costs[i * columns + k];
    return turned;
  }

  template <typename Variables>
  double entries_of(const Variables& variables) const {
    double entries = 1;
    for (const int variable : variables) entries *= static_cast<double>(sizes_[variable]);
    return entries;
  }

  void add_table(Table table) {
    for (const int variable : table.variables) tables_of_[variable].push_back(tables_.size());
    tables_.push_back(std::move(table));
  }

  /// Returns false if the tables of the variable had to be divided.
  bool eliminate(int variable) {
    Bucket bucket{.variable = variable};
    for (const std::size_t table : tables_of_[variable])
      if (!tables_[table].variables.empty()) bucket.tables.push_back(std::exchange(tables_[table], {}));
    const std::vector<std::vector<const Table*>> groups = grouped(bucket, variable);
    std::set<int> around = std::move(neighbours_[variable]);
    for (const int other : around) neighbours_[other].erase(variable);
    for (const auto& group : groups) {
      Table joined = minimum_over(variable, group);
      if (joined.variables.empty()) {
        constant_ += joined.costs.front();
        continue;
      }
      for (const int a : joined.variables)
        for (const int b : joined.variables)
          if (a != b) neighbours_[a].insert(b);
      add_table(std::move(joined));
    }
    for (const int other : around) {
      left_.erase({entries_[other], other});
      entries_[other] = entries_of(neighbours_[other]);
      left_.emplace(entries_[other], other);
    }
    buckets_.push_back(std::move(bucket));
    return groups.size() == 1;
  }

  /// Joins the tables as long as what is left without the variable is not too large.
  std::vector<std::vector<const Table*>> grouped(const Bucket& bucket, int variable) const {
    std::vector<std::vector<const Table*>> groups;
    std::vector<std::set<int>> variables;
    for (const Table& table : bucket.tables) {
      bool placed = false;
      for (std::size_t i = 0; i < groups.size() && !placed; ++i) {
        std::set<int> all = variables[i];
        all.insert(table.variables.begin(), table.variables.end());
        all.erase(variable);
        if (entries_of(all) > static_cast<double>(most_)) continue;
        variables[i] = std::move(all);
        groups[i].push_back(&table);
        placed = true;
      }
      if (placed) continue;
      variables.emplace_back(table.variables.begin(), table.variables.end());
      groups.push_back({&table});
    }
    return groups;
  }

  /// Returns the sum of the tables, least over the choices of the variable.
  Table minimum_over(int variable, const std::vector<const Table*>& tables) {
    std::set<int> all;
    for (const Table* table : tables) all.insert(table->variables.begin(), table->variables.end());
    all.erase(variable);
    Table least{.variables = {all.begin(), all.end()}};
    const auto entries = static_cast<std::size_t>(entries_of(all));
    largest_ = std::max(largest_, entries);
    least.costs.assign(entries, std::numeric_limits<double>::infinity());
    std::vector<std::size_t> own;                 // [table] places between two choices of the eliminated variable
    std::vector<std::vector<std::size_t>> steps;  // [table][variable of `least`]
    for (const Table* table : tables) {
      std::vector<std::size_t> step(least.variables.size(), 0);
      std::size_t stride = 1, of_variable = 0;
      for (std::size_t i = table->variables.size(); i-- > 0;) {
        const int name = table->variables[i];
        if (name == variable) {
          of_variable = stride;
        } else {
          step[std::ranges::lower_bound(least.variables, name) - least.variables.begin()] = stride;
        }
        stride *= sizes_[name];
      }
      steps.push_back(std::move(step));
      own.push_back(of_variable);
    }
    std::vector<std::size_t> choice(least.variables.size(), 0), at(tables.size(), 0);
    for (std::size_t entry = 0; entry < entries; ++entry) {
      for (std::size_t value = 0; value < sizes_[variable]; ++value) {
        double sum = 0;
        for (std::size_t t = 0; t < tables.size(); ++t) sum += tables[t]->costs[at[t] + value * own[t]];
        least.costs[entry] = std::min(least.costs[entry], sum);
      }
      for (std::size_t i = choice.size(); i-- > 0;) {
        ++choice[i];
        for (std::size_t t = 0; t < tables.size(); ++t) at[t] += steps[t][i];
        if (choice[i] < sizes_[least.variables[i]]) break;
        for (std::size_t t = 0; t < tables.size(); ++t) at[t] -= steps[t][i] * choice[i];
        choice[i] = 0;
      }
    }
    return least;
  }

  /// Chooses in the opposite order: each variable's tables then hold nothing but variables that are chosen.
  std::vector<int> decoded() const {
    std::vector<int> choices(sizes_.size(), 0);
    for (std::size_t i = buckets_.size(); i-- > 0;) {
      const Bucket& bucket = buckets_[i];
      double least = std::numeric_limits<double>::infinity();
      int best = 0;
      for (std::size_t value = 0; value < sizes_[bucket.variable]; ++value) {
        choices[bucket.variable] = static_cast<int>(value);
        double sum = 0;
        for (const Table& table : bucket.tables) sum += entry_of(table, choices);
        if (sum >= least) continue;
        least = sum;
        best = static_cast<int>(value);
      }
      choices[bucket.variable] = best;
    }
    return choices;
  }

  double entry_of(const Table& table, const std::vector<int>& choices) const {
    std::size_t at = 0;
    for (const int variable : table.variables) at = at * sizes_[variable] + static_cast<std::size_t>(choices[variable]);
    return table.costs[at];
  }

  /// Changes one choice after the other as long as that makes the whole cheaper.
  void improve(std::vector<int>& choices) const {
    std::vector<std::vector<const PairCost*>> pairs(sizes_.size());
    for (const PairCost& pair : problem_.pairs) {
      pairs[pair.first].push_back(&pair);
      pairs[pair.second].push_back(&pair);
    }
    const auto local = [&](int variable, int value) {
      double sum = problem_.costs[variable][value];
      for (const PairCost* pair : pairs[variable]) {
        const int first = pair->first == variable ? value : choices[pair->first];
        const int second = pair->second == variable ? value : choices[pair->second];
        sum += pair->costs[static_cast<std::size_t>(first) * sizes_[pair->second] + static_cast<std::size_t>(second)];
      }
      return sum;
    };
    for (bool improved = true; improved;) {
      improved = false;
      for (int variable = 0; variable < std::ssize(choices); ++variable) {
        double least = local(variable, choices[variable]);
        for (int value = 0; value < static_cast<int>(sizes_[variable]); ++value) {
          const double cost = local(variable, value);
          if (cost >= least * (1 - 1e-12)) continue;
          least = cost;
          choices[variable] = value;
          improved = true;
        }
      }
    }
  }

  const AssignmentProblem& problem_;
  std::size_t most_;
  std::vector<std::size_t> sizes_;                   ///< [variable] choices
  std::vector<Table> tables_;                        ///< those that were eliminated are empty
  std::vector<std::vector<std::size_t>> tables_of_;  ///< [variable]
  std::vector<std::set<int>> neighbours_;            ///< [variable]
  std::vector<double> entries_;                      ///< [variable] of the table that its elimination would make
  std::set<std::pair<double, int>> left_;            ///< variables that are left, by those
  std::vector<Bucket> buckets_;                      ///< in the order of elimination
  double constant_ = 0;
  std::size_t largest_ = 0;
};

}  // namespace

double cost_of(const AssignmentProblem& problem, const std::vector<int>& choices) {
  double sum = 0;
  for (std::size_t i = 0; i < choices.size(); ++i) sum += problem.costs[i][static_cast<std::size_t>(choices[i])];
  for (const PairCost& pair : problem.pairs) {
    const std::size_t columns = problem.costs[static_cast<std::size_t>(pair.second)].size();
    sum += pair.costs[static_cast<std::size_t>(choices[pair.first]) * columns +
                      static_cast<std::size_t>(choices[pair.second])];
  }
  return sum;
}

Assignment cheapest_assignment(const AssignmentProblem& problem, std::size_t most_entries) {
  return Elimination(problem, most_entries).run();
}

}}  // namespace plumb::planner
