#include "schedules/search/order_program.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "schedules/bounds/lane_times.h"
#include "schedules/error.h"
#include "schedules/search/exact_order.h"
#include "schedules/synthesis/order_graph.h"
#include "schedules/synthesis/timed_order.h"

namespace plumb { inline namespace schedules {
namespace {

constexpr std::int64_t kMostUnits = 100'000;        // of time
constexpr std::int64_t kMostMemoryUnits = 100'000;  // of a rank's memory
constexpr double kTolerance = 0.01;                 // units by which a solver's whole numbers may be off
constexpr std::string_view kProgramReason = "an integer program";

std::int64_t rounded_up(std::int64_t number, std::int64_t unit) {
  return (number + unit - 1) / unit;
}

struct ProgramAction {
  Action action;
  int rank = 0;
  std::int64_t duration = 0;  ///< in units
  std::int64_t earliest = 0;  ///< start
  std::int64_t latest = 0;    ///< start of an order below the given time
};

/// One of two actions starts `gap` units behind the start of the other, or later.
struct Wait {
  std::size_t first = 0;
  std::size_t second = 0;
  std::int64_t gap = 0;
};

/// It says whether one action runs before another of its rank: a number that is known, or a variable or one less it.
struct Before {
  bool known = false;  ///< what it is where there is no variable
  std::optional<std::size_t> variable;
  bool is_reversed = false;
};

class OrderProgram {
 public:
  OrderProgram(const OrderQuestion& question, std::int64_t below)
      : question_(question), lane_(lanes_of(question).front()), units_(question.frame.microbatches * question.slices) {
    find_unit(below);
    most_ = (below - 1) / unit_;
    add_actions();
    add_waits();
    is_contradictory_ = !propagate();
    while (!is_contradictory_ && decide()) is_contradictory_ = !propagate();
    if (is_contradictory_) return;
    find_needed();
    for (std::size_t a = 0; a < actions_.size(); ++a) {
      for (std::size_t b = a + 1; b < actions_.size(); ++b) {
        if (actions_[a].rank == actions_[b].rank && !needed_[a][b] && !needed_[b][a]) {
          variable_of_.emplace(std::pair{a, b}, variable_of_.size());
        }
      }
    }
  }

  bool is_contradictory() const { return is_contradictory_; }
  std::int64_t unit() const { return unit_; }

  std::string text() const {
    std::string rows = "Subject To\n";
    add_wait_rows(rows);
    add_pair_rows(rows);
    add_consequence_rows(rows);
    add_memory_rows(rows);
    std::string bounds = "Bounds\n", whole = "Binaries\n";
    for (std::size_t a = 0; a < actions_.size(); ++a) {
      bounds += fmt::format(" {} <= {} <= {}\n", actions_[a].earliest, start_name(a), actions_[a].latest);
    }
    bounds += fmt::format(" 0 <= time <= {}.5\n", most_);
    for (std::size_t v = 0; v < variable_of_.size(); ++v) whole += fmt::format(" {}\n", pair_name(v));
    return "Minimize\n least: time\n" + rows + bounds + whole + "End\n";
  }

  /// Returns the order of the starts in a solution.
  Schedule order_in(const std::map<std::string, double>& values) const {
    std::vector<std::pair<long long, std::size_t>> starts;  // those of one moment in an order that they allow
    for (const std::size_t a : in_turn()) {
      const auto value = values.find(start_name(a));
      starts.emplace_back(value == values.end() ? 0 : std::llround(value->second), a);
    }
    std::ranges::stable_sort(starts, {}, &std::pair<long long, std::size_t>::first);
    Schedule order = question_.frame;
    order.ranks.assign(static_cast<std::size_t>(question_.ranks), {});
    for (const auto& [start, a] : starts) order.ranks[actions_[a].rank].push_back(actions_[a].action);
    return order;
  }

 private:
  static std::string start_name(std::size_t action) { return fmt::format("s{}", action); }
  static std::string pair_name(std::size_t variable) { return fmt::format("y{}", variable); }

  bool is_split() const { return !question_.whole_backwards; }
  std::size_t id(int position, std::size_t kind, int unit) const {
    const std::size_t kinds = is_split() ? 3 : 2;
    return (static_cast<std::size_t>(position) * kinds + kind) * static_cast<std::size_t>(units_) +
           static_cast<std::size_t>(unit);
  }

  void find_unit(std::int64_t below) {
    std::int64_t divisor = 0;
    for (const std::vector<std::int64_t>* times :
         {&lane_.forward, &lane_.input_grad, &lane_.weight_grad, &lane_.hop.activation, &lane_.hop.gradient}) {
      for (const std::int64_t time : *times) divisor = std::gcd(divisor, time);
    }
    unit_ = std::max({divisor, rounded_up(below, kMostUnits), std::int64_t{1}});
  }

  void add_actions() {
    constexpr std::array kOps = {Op::kForward, Op::kInputGrad, Op::kWeightGrad};
    for (std::size_t s = 0; s < lane_.stages.size(); ++s) {
      const std::array durations = {lane_.forward[s], lane_.input_grad[s], lane_.weight_grad[s]};
      for (std::size_t kind = 0; kind < (is_split() ? 3U : 2U); ++kind) {
        for (int k = 0; k < units_; ++k) {
          const int slice = kind == 0 ? k % question_.slices : question_.slices - 1 - k % question_.slices;
          const Op op = kind == 1 && !is_split() ? Op::kBackward : kOps[kind];
          actions_.push_back({.action = {.op = op,
                                         .part = static_cast<std::int16_t>(slice),
                                         .stage = lane_.stages[s],
                                         .microbatch = k / question_.slices},
                              .rank = lane_.ranks[s],
                              .duration = durations[kind] / unit_});
        }
      }
    }
  }

  void wait(std::size_t first, std::size_t second, std::int64_t hop = 0) {
    waits_.push_back({.first = first, .second = second, .gap = actions_[first].duration + hop});
  }

  void add_waits() {
    const auto positions = static_cast<int>(lane_.stages.size());
    for (int s = 0; s < positions; ++s) {
      for (int k = 0; k < units_; ++k) {
        for (std::size_t kind = 0; kind < (is_split() ? 3U : 2U) && k > 0; ++kind) {
          wait(id(s, kind, k - 1), id(s, kind, k));
        }
        // The last slice of a micro-batch goes back first, behind the forwards of all.
        const int last_slice = (k / question_.slices + 1) * question_.slices - 1;
        wait(id(s, 0, last_slice), id(s, 1, k));
        if (is_split()) wait(id(s, 1, k), id(s, 2, k));
        if (s + 1 == positions) continue;
        wait(id(s, 0, k), id(s + 1, 0, k), lane_.hop.activation[s] / unit_);
        wait(id(s + 1, 1, k), id(s, 1, k), lane_.hop.gradient[s] / unit_);
      }
    }
    for (std::size_t a = 0; a < actions_.size(); ++a) {
      actions_[a].latest = most_ + uncounted(actions_[a].rank) - actions_[a].duration;
    }
  }

  /// Returns the units before a rank's first action, which a span leaves out. They are rounded up: a span may then be
  /// less than it is.
  std::int64_t uncounted(int rank) const {
    const auto first = std::ranges::find(lane_.ranks, rank) - lane_.ranks.begin();
    return rounded_up(lane_.uncounted[static_cast<std::size_t>(first)], unit_);
  }

  /// Narrows the times that are left for each action by all waits; false if there are none left for one.
  bool propagate() {
    for (bool changes = true; changes;) {
      changes = false;
      for (const Wait& wait : waits_) {
        ProgramAction& first = actions_[wait.first];
        ProgramAction& second = actions_[wait.second];
        if (first.earliest + wait.gap > second.earliest) second.earliest = first.earliest + wait.gap, changes = true;
        if (second.latest - wait.gap < first.latest) first.latest = second.latest - wait.gap, changes = true;
        if (first.earliest > first.latest || second.earliest > second.latest) return false;
      }
    }
    return true;
  }

  /// Adds the waits of two actions of a rank of which one has no time left to be the first; false if there are no more.
  bool decide() {
    find_needed();
    const std::size_t before = waits_.size();
    const auto can_be_first = [this](std::size_t a, std::size_t b) {
      return actions_[a].earliest + actions_[a].duration <= actions_[b].latest;
    };
    for (std::size_t a = 0; a < actions_.size(); ++a) {
      for (std::size_t b = a + 1; b < actions_.size(); ++b) {
        if (actions_[a].rank != actions_[b].rank || needed_[a][b] || needed_[b][a]) continue;
        if (!can_be_first(b, a)) wait(a, b);
        if (!can_be_first(a, b)) wait(b, a);
      }
    }
    return waits_.size() > before;
  }

  /// Returns the actions in an order that all waits allow.
  std::vector<std::size_t> in_turn() const {
    std::vector<int> open(actions_.size(), 0);
    std::vector<std::vector<std::size_t>> behind(actions_.size());
    for (const Wait& wait : waits_) ++open[wait.second], behind[wait.first].push_back(wait.second);
    std::vector<std::size_t> turn;
    for (std::size_t a = 0; a < actions_.size(); ++a) {
      if (open[a] == 0) turn.push_back(a);
    }
    for (std::size_t next = 0; next < turn.size(); ++next) {
      for (const std::size_t b : behind[turn[next]]) {
        if (--open[b] == 0) turn.push_back(b);
      }
    }
    return turn;
  }

  /// Finds which action needs which, directly or over others.
  void find_needed() {
    needed_.assign(actions_.size(), std::vector<bool>(actions_.size(), false));
    std::vector<std::vector<std::size_t>> behind(actions_.size());
    for (const Wait& wait : waits_) behind[wait.first].push_back(wait.second);
    const std::vector<std::size_t> turn = in_turn();
    for (std::size_t at = turn.size(); at-- > 0;) {
      std::vector<bool>& needs = needed_[turn[at]];
      for (const std::size_t b : behind[turn[at]]) {
        needs[b] = true;
        for (std::size_t c = 0; c < needs.size(); ++c) needs[c] = needs[c] || needed_[b][c];
      }
    }
  }

  /// Says whether `a` runs before `b`.
  Before before(std::size_t a, std::size_t b) const {
    if (needed_[a][b] || needed_[b][a]) return {.known = needed_[a][b], .variable = {}};
    return {.variable = variable_of_.at(std::minmax(a, b)), .is_reversed = a > b};
  }

  static void add_before(std::string& row, std::int64_t factor, const Before& before, std::int64_t& known) {
    if (!before.variable) {
      known += before.known ? factor : 0;
    } else {
      known += before.is_reversed ? factor : 0;
      add_term(row, static_cast<double>(before.is_reversed ? -factor : factor), pair_name(*before.variable));
    }
  }

  void add_wait_rows(std::string& rows) const {
    for (const Wait& wait : waits_) {
      add_term(rows, 1, start_name(wait.second));
      add_term(rows, -1, start_name(wait.first));
      rows += fmt::format(" >= {}\n", wait.gap);
    }
    for (std::size_t a = 0; a < actions_.size(); ++a) {
      rows += " + 1 time\n";
      add_term(rows, -1, start_name(a));
      rows += fmt::format(" >= {}\n", actions_[a].duration - uncounted(actions_[a].rank));
    }
  }

  void add_pair_rows(std::string& rows) const {
    for (const auto& [pair, variable] : variable_of_) {
      for (const auto& [a, b] : {pair, std::pair{pair.second, pair.first}}) {  // a runs first
        const std::int64_t most = actions_[a].latest + actions_[a].duration - actions_[b].earliest;
        const std::int64_t factor = a < b ? -most : most;
        add_term(rows, 1, start_name(b));
        add_term(rows, -1, start_name(a));
        add_term(rows, static_cast<double>(factor), pair_name(variable));
        rows += fmt::format(" >= {}\n", actions_[a].duration - (a < b ? most : 0));
      }
    }
  }

  /// If a runs before b, so does what a needs, and a runs before what needs b.
  void add_consequence_rows(std::string& rows) const {
    const auto follows = [&](std::size_t a, std::size_t b, std::size_t c, std::size_t d) {
      const Before cause = before(a, b);
      const Before effect = before(c, d);
      if (!cause.variable || (!effect.variable && effect.known)) return;
      std::string row;
      std::int64_t known = 0;
      add_before(row, 1, effect, known);
      add_before(row, -1, cause, known);
      rows += fmt::format("{} >= {}\n", row, -known);
    };
    for (const Wait& wait : waits_) {
      if (actions_[wait.first].rank != actions_[wait.second].rank) continue;
      for (std::size_t other = 0; other < actions_.size(); ++other) {
        if (actions_[other].rank != actions_[wait.first].rank || other == wait.first || other == wait.second) continue;
        follows(wait.second, other, wait.first, other);
        follows(other, wait.first, other, wait.second);
      }
    }
  }

  void add_memory_rows(std::string& rows) const {
    const std::vector<std::int64_t>& max_bytes = question_.memory.max_bytes;
    if (max_bytes.empty()) return;
    for (std::size_t a = 0; a < actions_.size(); ++a) {
      if (actions_[a].action.op != Op::kForward) continue;
      const std::int64_t most = max_bytes[static_cast<std::size_t>(actions_[a].rank)];
      std::int64_t divisor = most;
      for (const ProgramAction& of : actions_) {
        if (of.rank == actions_[a].rank) divisor = std::gcd(divisor, bytes_added(question_.memory, of.action));
      }
      const std::int64_t unit = std::max({divisor, rounded_up(most, kMostMemoryUnits), std::int64_t{1}});
      // Bytes that are taken are rounded down, and those that are given back are rounded up.
      const auto units_added = [&](std::size_t b) {
        const std::int64_t bytes = bytes_added(question_.memory, actions_[b].action);
        return bytes >= 0 ? bytes / unit : -rounded_up(-bytes, unit);
      };
      std::string row;
      std::int64_t held = units_added(a);
      for (std::size_t b = 0; b < actions_.size(); ++b) {
        if (b == a || actions_[b].rank != actions_[a].rank || units_added(b) == 0) continue;
        add_before(row, units_added(b), before(b, a), held);
      }
      const std::int64_t left = rounded_up(most, unit) - held;
      if (row.empty() && left >= 0) continue;
      rows += fmt::format("{} <= {}\n", row.empty() ? " + 1 time\n" : row, left);
    }
  }

  const OrderQuestion& question_;
  LaneTimes lane_;
  int units_;              ///< slices of all micro-batches
  std::int64_t unit_ = 1;  ///< of time
  std::int64_t most_ = 0;  ///< units that an order below the given time takes
  std::vector<ProgramAction> actions_;
  std::vector<Wait> waits_;
  std::vector<std::vector<bool>> needed_;  ///< [action][action] the second one needs the first
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> variable_of_;
  bool is_contradictory_ = false;
};

/// True if each rank's first action starts when the first micro-batch has come all the way: no stage before it lies behind
/// another one of its rank. A span is counted from that moment.
bool starts_are_known(const OrderQuestion& question) {
  const LaneTimes lane = lanes_of(question).front();
  std::vector<bool> has_begun(static_cast<std::size_t>(question.ranks), false);
  bool is_known = true;
  for (const int rank : lane.ranks) {
    if (!has_begun[rank] && !is_known) return false;
    if (has_begun[rank]) is_known = false;
    has_begun[rank] = true;
  }
  return true;
}

void require_programmable(const OrderQuestion& question) {
  if (is_programmable(question)) return;
  throw ScheduleError(
      fmt::format("{} is no question for an integer program: it has several lanes, messages that wait for each other, "
                  "or more than {} slices on all stages",
                  question.frame.name, kMostProgramPasses));
}

/// Returns the time of an order that keeps to the question's memory, or nothing.
std::optional<std::int64_t> time_of(const Schedule& order, const OrderQuestion& question) {
  if (!fits_memory(question, order)) return std::nullopt;
  const OrderGraph graph(order, question);
  const std::int64_t time = TimedOrder(graph).time();
  return time == TimedOrder::kDeadlock ? std::nullopt : std::optional(time);
}

}  // namespace

bool is_programmable(const OrderQuestion& question) {
  const auto stages = static_cast<std::int64_t>(question.frame.stages.size());
  return is_searchable_exactly(question) &&
         stages * question.frame.microbatches * question.slices <= kMostProgramPasses &&
         (question.objective == Objective::kMakespan || starts_are_known(question));
}

std::string order_program(const OrderQuestion& question, std::int64_t below) {
  require_programmable(question);
  const OrderProgram program(question, below);
  return program.is_contradictory() ? std::string{} : program.text();
}

SolvedOrder solved_order(const OrderQuestion& question, std::int64_t below, const IntegerSolver& solver) {
  require_programmable(question);
  const OrderProgram program(question, below);
  SolvedOrder solved{.schedule = question.frame};
  if (program.is_contradictory()) {
    solved.bound = below;
    return solved;
  }
  const std::optional<SolverAnswer> answer = solver(program.text());
  if (!answer) return solved;
  if (says_infeasible(answer->text)) {
    solved.bound = below;
    solved.solver = answer->solver;
    return solved;
  }
  std::map<std::string, double> values;
  for (const auto& [name, value] : values_in(answer->text)) values[name] = value;
  if (!values.contains("time")) return solved;
  Schedule order = program.order_in(values);
  if (const std::optional<std::int64_t> time = time_of(order, question); time && *time < below) {
    solved.schedule = std::move(order);
    solved.time = *time;
  }
  if (says_optimal(answer->text)) {
    solved.bound = static_cast<std::int64_t>(std::ceil(values["time"] - kTolerance)) * program.unit();
    solved.solver = answer->solver;
  }
  return solved;
}

LowerBound program_bound(std::int64_t time, const std::string& solver) {
  const std::string reason = solver.empty() ? fmt::format("{} whose constraints contradict each other", kProgramReason)
                                            : fmt::format("{} that {} has solved", kProgramReason, solver);
  return {.time = time,
          .reason = reason,
          .terms = {
              {.what = "which no order takes less than, as far as micro-batches ascend on every stage; a check asks a "
                       "solver again",
               .time = time}}};
}

bool is_program_bound(const LowerBound& bound) {
  return bound.reason.starts_with(kProgramReason);
}

}}  // namespace plumb::schedules
