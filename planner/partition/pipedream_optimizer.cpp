#include "planner/partition/pipedream_optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/partition/pipedream_states.h"

namespace plumb { inline namespace planner {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

/// The tables A of all levels. An entry is computed when it is asked for, and only if it may lie below a limit: m
/// machines need at least the m-th part of the work between two states.
class PipedreamTables {
 public:
  PipedreamTables(PipedreamStates states, const PipedreamOptions& options)
      : options_(options), states_(std::move(states)), earlier_(states_.nodes.size()) {
    const std::size_t count = states_.nodes.size();
    slack_ = 1e-9 * states_.seconds.back();
    for (std::size_t state = 0; state < count; ++state) by_seconds_.push_back(static_cast<int>(state));
    std::ranges::stable_sort(by_seconds_, {}, [&](int state) { return states_.seconds[state]; });
    // A cut at a state without those weights subtracts them, and its sum over replicas then takes negative time.
    missing_weights_.assign(count + 1, 0);
    double least_behind = kNone;
    for (std::size_t from = count; from-- > 1;) {
      least_behind = std::min(least_behind, states_.weight_bytes[from]);
      missing_weights_[from] = std::max(0.0, states_.weight_bytes[from - 1] - least_behind);
    }
    const double most_missing = *std::ranges::max_element(missing_weights_);
    double inner_devices = 1, gain = 0;
    for (const MachineLevel& level : options.levels) {
      Table table{.level = level, .inner_devices = inner_devices, .inner_gain = gain, .rows = {}};
      table.machines_within = tables_.empty() ? 1 : tables_.back().level.count;
      table.rows.resize(count);
      tables_.push_back(std::move(table));
      gain = gain * level.count + inner_devices * 4 / level.bytes_per_second * most_missing;
      inner_devices *= level.count;
    }
  }

  /// Returns A of the whole graph on all machines. The limit grows from what the work alone takes, since a search below
  /// a low limit ends soon.
  double slowest() {
    constexpr double kFirst = 1e-3, kStep = 1.03, kLargest = 1e6;
    const int machines = tables_.back().level.count;
    const double least = states_.seconds.back() / (tables_.back().inner_devices * machines);
    for (double above = kFirst; above < kLargest; above = std::min(2 * above, (1 + above) * kStep - 1)) {
      const double found = value(tables_.size() - 1, 0, last(), machines, least * (1 + above));
      if (found < kNone) return found;
    }
    return value(tables_.size() - 1, 0, last(), machines, kNone);
  }

  /// Returns the stages of the innermost level.
  std::vector<MeasuredStage> stages() {
    std::vector<MeasuredStage> stages;
    NodeSet placed(states_.nodes.front().size());
    add_stages(tables_.size() - 1, 0, last(), 1, placed, stages);
    return stages;
  }

 private:
  static constexpr int kUnsplit = -1, kUnknown = -2;

  struct Entry {
    double seconds = -kNone;    ///< or, while `cut` is kUnknown, what they are no less than
    int cut = kUnknown;         ///< last state of the stages before the last one; kUnsplit: there are none
    std::int16_t replicas = 0;  ///< of the last stage
    std::int16_t machines = 0;  ///< of the last stage and those before it
  };

  struct Table {
    MachineLevel level;
    double inner_devices = 1;              ///< of one machine
    double inner_gain = 0;                 ///< device-seconds that faulty cuts of the inner levels may save, at most
    int machines_within = 1;               ///< of the level below
    std::vector<std::vector<Entry>> rows;  ///< [first state][state, machines - 1]
  };

  int last() const { return static_cast<int>(states_.nodes.size()) - 1; }

  static double between(int from, int to, const std::vector<double>& of) {
    return of[to] - (from > 0 ? of[from - 1] : 0);
  }

  /// Returns L: the time of what state `to` has beyond state `from` - 1 on one machine of the level; kNone if it is
  /// not below the limit.
  double on_one_machine(std::size_t level, int from, int to, double limit) {
    return level == 0 ? between(from, to, states_.seconds)
                      : value(level - 1, from, to, tables_[level - 1].level.count, limit);
  }

  bool fits(int from, int to, int machines_in_flight, int replicas) const {
    if (!options_.memory_bytes) return true;
    const double held = std::ceil(static_cast<double>(machines_in_flight) / replicas);
    return held * (between(from, to, states_.activation_bytes) + between(from, to, states_.weight_bytes)) <=
           *options_.memory_bytes;
  }

  double reduced(const Table& table, int from, int to, int replicas) const {
    return 4 * (replicas - 1) * between(from, to, states_.weight_bytes) / (table.level.bytes_per_second * replicas);
  }

  /// Returns the time of one stage on so many machines that sum up weights for `reduce`; kNone if it is not below the
  /// limit.
  double replicated(std::size_t level, int from, int to, int machines, double reduce, double limit) {
    return (on_one_machine(level, from, to, limit * machines - reduce + slack_) + reduce) / machines;
  }

  double unsplit(std::size_t level, int from, int to, int machines, double limit) {
    const Table& table = tables_[level];
    if (options_.straight && machines > 1) return kNone;
    if (!fits(from, to, table.level.count - machines, machines)) return kNone;
    return replicated(level, from, to, machines, reduced(table, from, to, machines) / table.machines_within, limit);
  }

  double transfer(const Table& table, int state, int replicas) const {
    if (!options_.compression_ratio) return 0;
    return 2 * states_.output_bytes[state] / (table.level.bytes_per_second * replicas) / *options_.compression_ratio;
  }

  /// Returns the states that `state` contains, in the order of their time.
  const std::vector<int>& earlier(int state) {
    std::vector<int>& found = earlier_[state];
    if (found.empty())
      for (const int other : by_seconds_)
        if (other < state && states_.nodes[other].is_subset_of(states_.nodes[state])) found.push_back(other);
    return found;
  }

  /// Returns A(from, to, machines) of the level if it is below the limit, otherwise kNone.
  double value(std::size_t level, int from, int to, int machines, double limit) {
    const Entry& found = entry(level, from, to, machines, limit);
    return found.seconds < limit ? found.seconds : kNone;
  }

  const Entry& entry(std::size_t level, int from, int to, int machines, double limit) {
    std::vector<Entry>& row = tables_[level].rows[from];
    const auto count = static_cast<std::size_t>(tables_[level].level.count);
    if (row.empty()) row.resize((states_.nodes.size() - static_cast<std::size_t>(from)) * count);
    Entry& known = row[static_cast<std::size_t>(to - from) * count + static_cast<std::size_t>(machines - 1)];
    if (known.cut == kUnknown && known.seconds < limit) known = best_entry(level, from, to, machines, limit);
    return known;
  }

  /// Returns the best entry below the limit; where there is none, what says so.
  Entry best_entry(std::size_t level, int from, int to, int machines, double limit) {
    const auto count = static_cast<std::int16_t>(machines);
    Entry best{.seconds = limit};
    const double whole = unsplit(level, from, to, machines, limit);
    if (whole < limit) best = {.seconds = whole, .cut = kUnsplit, .replicas = count, .machines = count};
    if (to == from || machines == 1) return best;
    if (options_.fewer_machines) {
      const Entry& fewer = entry(level, from, to, machines - 1, best.seconds);
      if (fewer.seconds < best.seconds) best = fewer;
    }
    for (int replicas = 1; replicas < (options_.straight ? 2 : machines); ++replicas)
      try_cuts(level, from, to, machines, replicas, best);
    return best;
  }

  /// Takes the best cut in front of a last stage of so many replicas, if it is better than `best`.
  void try_cuts(std::size_t level, int from, int to, int machines, int replicas, Entry& best) {
    const Table& table = tables_[level];
    const int others = machines - replicas;
    const double gain_before = (level > 0 ? others * table.inner_gain : 0) +
                               table.inner_devices * 4 / table.level.bytes_per_second * missing_weights_[from] + slack_;
    const std::vector<int>& cuts = earlier(to);
    const auto seconds_of = [&](int state) { return states_.seconds[state]; };
    const auto earliest = [&] {
      return states_.seconds[to] - best.seconds * table.inner_devices * replicas - table.inner_gain - slack_;
    };
    const auto latest = [&] {
      return (from > 0 ? states_.seconds[from - 1] : 0) + best.seconds * table.inner_devices * others + gain_before;
    };
    const double sent = to < last() ? transfer(table, to, replicas) : 0;
    if (!(sent < best.seconds)) return;
    for (auto cut = std::ranges::lower_bound(cuts, earliest(), {}, seconds_of);
         cut != cuts.end() && states_.seconds[*cut] <= latest(); ++cut) {
      if (*cut < from || states_.seconds[*cut] < earliest()) continue;
      if (!fits(*cut + 1, to, table.level.count - machines, replicas)) continue;
      const double messages = std::max(sent, transfer(table, *cut, replicas));
      if (!(messages < best.seconds)) continue;
      const double reduce = reduced(table, *cut + 1, to, replicas);
      const auto stage = [&] { return replicated(level, *cut + 1, to, replicas, reduce, best.seconds); };
      if (level == 0 && !(stage() < best.seconds)) continue;  // no table is asked
      const double ahead = value(level, from, *cut, others, best.seconds);
      if (!(ahead < best.seconds)) continue;
      const double seconds = std::max({ahead, stage(), messages});
      if (seconds < best.seconds) {
        best = {.seconds = seconds,
                .cut = *cut,
                .replicas = static_cast<std::int16_t>(replicas),
                .machines = static_cast<std::int16_t>(machines)};
      }
    }
  }

  /// Appends the stages from state `from` to state `to`. A node belongs to the first stage that takes it.
  void add_stages(std::size_t level, int from, int to, int copies, NodeSet& placed,
                  std::vector<MeasuredStage>& stages) {
    add_split(level, from, to, tables_[level].level.count, copies, placed, stages);
  }

  void add_split(std::size_t level, int from, int to, int machines, int copies, NodeSet& placed,
                 std::vector<MeasuredStage>& stages) {
    const Entry found = entry(level, from, to, machines, kNone);
    if (found.cut >= 0) add_split(level, from, found.cut, found.machines - found.replicas, copies, placed, stages);
    const int begin = found.cut >= 0 ? found.cut + 1 : from;
    const int all = copies * found.replicas;
    if (level > 0) return add_stages(level - 1, begin, to, all, placed, stages);
    MeasuredStage stage{.nodes = {}, .replicas = all, .rebuilt = {}};
    const double alone = between(begin, to, states_.seconds);
    stage.seconds = Seconds{(alone + reduced(tables_[0], begin, to, found.replicas)) / all};
    const NodeSet own = states_.nodes[to] - placed;
    for (auto node = own.find_first(); node != NodeSet::npos; node = own.find_next(node))
      stage.nodes.push_back(static_cast<int>(node));
    placed |= own;
    stages.push_back(std::move(stage));
  }

  const PipedreamOptions& options_;
  PipedreamStates states_;
  double slack_ = 0;                       ///< rounding of sums of times, at most
  std::vector<int> by_seconds_;            ///< states in the order of their time
  std::vector<std::vector<int>> earlier_;  ///< [state]; empty: not yet computed
  std::vector<double> missing_weights_;    ///< [first state] weights in front of it that a state behind it may lack
  std::vector<Table> tables_;
};

}  // namespace

std::optional<StagePartition> pipedream_partition(const ProfiledGraph& graph, const PipedreamOptions& options,
                                                  const std::string& file) {
  PipedreamTables tables(pipedream_states(graph, file), options);
  const double slowest = tables.slowest();
  if (slowest == kNone) return std::nullopt;
  return StagePartition{.stages = tables.stages(), .slowest = Seconds{slowest}};
}

}}  // namespace plumb::planner
