#include "simulator/memory.h"

#include <algorithm>

#include "simulator/weight_versions.h"

namespace plumb {
namespace {

struct Change {
  SimTime time{0};
  std::int64_t bytes = 0;
  int activations = 0;
};

/// Collects what every action takes and gives back, by rank.
class ChangeCollector {
 public:
  ChangeCollector(const Schedule& schedule, const ActionTable& table, const CostTable& costs, const ActionTimes& times)
      : schedule_(schedule),
        table_(table),
        costs_(costs),
        times_(times),
        changes_(schedule.ranks.size()),
        unsharded_(schedule.stages.size(), false),
        has_backward_(schedule.stages.size(), false) {
    for (const auto& actions : schedule.ranks) {
      for (const Action& action : actions) {
        if (action.op == Op::kBackward || action.op == Op::kInputGrad) has_backward_[action.stage] = true;
      }
    }
  }

  std::vector<std::vector<Change>> collect() {
    std::int32_t id = 0;
    for (std::size_t r = 0; r < schedule_.ranks.size(); ++r) {
      changes_[r].reserve(schedule_.ranks[r].size() + 1);
      for (const Action& action : schedule_.ranks[r]) collect_action(r, action, id++);
    }
    collect_versions();
    return std::move(changes_);
  }

 private:
  void collect_action(std::size_t rank, const Action& action, std::int32_t id) {
    const StageMemory& memory = costs_.stages[action.stage].memory;
    const auto add = [&](SimTime time, std::int64_t bytes, int activations = 0) {
      if (bytes != 0 || activations != 0) changes_[rank].push_back({time, bytes, activations});
    };
    const SimTime start = times_.start[id];
    const SimTime end = times_.end[id];
    const std::int64_t whole = memory.forward_bytes + memory.recompute_bytes;
    switch (action.op) {
      case Op::kForward: {
        add(start, memory.forward_bytes + memory.forward_workspace_bytes, 1);
        const bool forward_only = !has_backward_[action.stage];
        add(end, -memory.forward_workspace_bytes - (forward_only ? memory.forward_bytes : 0), forward_only ? -1 : 0);
        break;
      }
      case Op::kRecompute:
        add(start, memory.recompute_bytes + memory.forward_workspace_bytes);
        add(end, -memory.forward_workspace_bytes);
        break;
      case Op::kBackward:
        add(start, rebuilt_here(action, memory) + memory.backward_workspace_bytes);
        add(end, -memory.backward_workspace_bytes - whole, -1);
        break;
      case Op::kInputGrad:
        add(start, rebuilt_here(action, memory) + memory.backward_workspace_bytes);
        add(end, -memory.backward_workspace_bytes - memory.released_at_input_grad_bytes);
        break;
      case Op::kWeightGrad:
        add(start, memory.backward_workspace_bytes);
        add(end, -memory.backward_workspace_bytes - (whole - memory.released_at_input_grad_bytes), -1);
        break;
      case Op::kUnshard:
        if (!unsharded_[action.stage]) add(start, memory.unsharded_bytes);
        unsharded_[action.stage] = true;
        break;
      case Op::kReshard:
        if (unsharded_[action.stage]) add(end, -memory.unsharded_bytes);
        unsharded_[action.stage] = false;
        break;
      case Op::kOffload:
        add(end, -memory.forward_bytes, -1);
        break;
      case Op::kReload:
        add(start, memory.forward_bytes, 1);
        break;
      case Op::kEvict:
        add(end, -memory.forward_bytes, -1);
        partner_of(rank).push_back({start, memory.forward_bytes, 1});
        break;
      case Op::kLoad:
        add(start, memory.forward_bytes, 1);
        partner_of(rank).push_back({end, -memory.forward_bytes, -1});
        break;
      default:
        break;
    }
  }

  /// What I or B itself rebuilds, where no R did.
  std::int64_t rebuilt_here(const Action& action, const StageMemory& memory) const {
    const bool has_recompute =
        table_.find(Op::kRecompute, action.stage, action.microbatch, action.part) != ActionTable::kNone;
    return has_recompute ? 0 : memory.recompute_bytes;
  }

  std::vector<Change>& partner_of(std::size_t rank) { return changes_[changes_.size() - 1 - rank]; }

  void collect_versions() {
    const auto extra = extra_versions(schedule_);
    for (std::size_t s = 0; s < extra.size(); ++s) {
      const std::int64_t bytes = costs_.stages[s].memory.parameter_bytes;
      for (const ExtraVersion& version : extra[s]) {
        changes_[schedule_.stages[s].rank].push_back({times_.start[version.born], bytes});
        changes_[schedule_.stages[s].rank].push_back({times_.end[version.dies], -bytes});
      }
    }
  }

  const Schedule& schedule_;
  const ActionTable& table_;
  const CostTable& costs_;
  const ActionTimes& times_;
  std::vector<std::vector<Change>> changes_;
  std::vector<bool> unsharded_;
  std::vector<bool> has_backward_;
};

/// Changes of one moment are one sample. Chunks are counted in list order: an action without duration still holds one.
RankMemory sum_up(std::vector<Change> changes, std::int64_t held_bytes, bool keep_samples) {
  if (!std::ranges::is_sorted(changes, {}, &Change::time)) std::ranges::stable_sort(changes, {}, &Change::time);
  RankMemory memory;
  std::int64_t bytes = held_bytes;
  int activations = 0;
  const auto settle = [&](SimTime time) {
    memory.peak_bytes = std::max(memory.peak_bytes, bytes);
    if (!keep_samples || (!memory.samples.empty() && memory.samples.back().bytes == bytes)) return;
    memory.samples.push_back({.time = time, .bytes = bytes});
  };
  SimTime now{0};
  for (const Change& change : changes) {
    if (change.time != now) settle(now);
    now = change.time;
    bytes += change.bytes;
    activations += change.activations;
    memory.peak_activations = std::max(memory.peak_activations, activations);
  }
  settle(now);
  return memory;
}

}  // namespace

std::vector<RankMemory> memory_by_rank(const Schedule& schedule, const ActionTable& table, const CostTable& costs,
                                       const ActionTimes& times, bool keep_samples) {
  std::vector<std::int64_t> held_bytes(schedule.ranks.size(), 0);
  for (std::size_t s = 0; s < schedule.stages.size(); ++s) {
    const StageMemory& memory = costs.stages[s].memory;
    held_bytes[schedule.stages[s].rank] += memory.parameter_bytes + memory.gradient_bytes + memory.optimizer_bytes;
  }
  std::vector<std::vector<Change>> changes = ChangeCollector(schedule, table, costs, times).collect();
  std::vector<RankMemory> ranks;
  for (std::size_t r = 0; r < changes.size(); ++r)
    ranks.push_back(sum_up(std::move(changes[r]), held_bytes[r], keep_samples));
  return ranks;
}

}  // namespace plumb
