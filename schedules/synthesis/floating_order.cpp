#include "schedules/synthesis/floating_order.h"

#include <algorithm>

#include "schedules/time.h"

namespace plumb { inline namespace schedules {
FloatingOrder::FloatingOrder(const OrderGraph& graph)
    : graph_(graph),
      weight_grad_of_(graph.actions.size(), OrderGraph::kNone),
      states_(graph.listed.size()),
      ends_(graph.actions.size()),
      causes_(graph.actions.size()),
      messages_(graph),
      rank_times_(graph.listed.size()) {
  for (std::size_t id = 0; id < graph.actions.size(); ++id) {
    if (graph.actions[id].op == Op::kWeightGrad) {
      weight_grad_of_[graph.inputs[id][0].id] = static_cast<std::int32_t>(id);
    }
  }
}

RankOrders FloatingOrder::without_weight_grads() const {
  RankOrders kept = graph_.listed;
  for (std::vector<std::int32_t>& order : kept) {
    std::erase_if(order, [this](std::int32_t id) { return graph_.actions[id].op == Op::kWeightGrad; });
  }
  return kept;
}

void FloatingOrder::run_weight_grad(int r) {
  RankState& rank = states_[r];
  const std::int32_t id = rank.pending[rank.next_pending++];
  rank.now += graph_.durations[id];
  if (rank.now > kLatestMoment.count()) refuse_late_moment("the schedule");
  rank.held_bytes += graph_.bytes_added[id];
  if (completed_ != nullptr) (*completed_)[r].push_back(id);
}

/// Runs the rank's next action, and the weight gradients that fit in front of it. False if the action waits for another
/// rank, or for memory that nothing gives back.
bool FloatingOrder::run_next(int r, const RankOrders& kept, const GapRule& gap) {
  RankState& rank = states_[r];
  const std::int32_t id = kept[r][rank.position];
  std::int64_t ready = 0;
  std::int32_t cause = OrderGraph::kNone;
  const auto& [own, neighbor, slice] = graph_.inputs[id];
  if (slice.id != OrderGraph::kNone && ends_[slice.id] == OrderGraph::kUnknownEnd) return false;
  if (own.id != OrderGraph::kNone) {
    if (ends_[own.id] == OrderGraph::kUnknownEnd) return false;
    ready = ends_[own.id];
    cause = own.id;
  }
  if (neighbor.id != OrderGraph::kNone) {
    const std::int64_t end = ends_[neighbor.id];
    if (end == OrderGraph::kUnknownEnd) return false;
    const std::int64_t arrives = end + neighbor.delay + messages_.waited(neighbor.id, end);
    if (arrives >= ready) ready = arrives, cause = neighbor.id;
  }
  if (rank.position == 0) rank.now = rank.start = ready;
  while (has_pending(rank) && ready > rank.now &&
         static_cast<double>(ready - rank.now) >=
             gap.least_gap_ratio * static_cast<double>(graph_.durations[rank.pending[rank.next_pending]])) {
    run_weight_grad(r);
  }
  const Op op = graph_.actions[id].op;
  if (op == Op::kForward) {
    while (!has_room(r, graph_.bytes_added[id]) && has_pending(rank)) run_weight_grad(r);
    if (!has_room(r, graph_.bytes_added[id])) return false;
  }
  const bool waited = ready >= rank.now;
  causes_[id] = waited ? cause : rank.position > 0 ? kept[r][rank.position - 1] : OrderGraph::kNone;
  rank.now = std::max(rank.now, ready) + graph_.durations[id];
  ends_[id] = rank.now;
  messages_.send(id, rank.now);
  if (rank.now > kLatestMoment.count()) refuse_late_moment("the schedule");
  rank.held_bytes += graph_.bytes_added[id];
  if (op == Op::kInputGrad) rank.pending.push_back(weight_grad_of_[id]);
  if (completed_ != nullptr) (*completed_)[r].push_back(id);
  ++rank.position;
  return true;
}

std::int64_t FloatingOrder::time(const RankOrders& kept, const std::vector<GapRule>& gaps) {
  std::ranges::fill(ends_, OrderGraph::kUnknownEnd);
  messages_.restart();
  std::vector<int> runnable;
  for (int r = static_cast<int>(states_.size()) - 1; r >= 0; --r) {
    std::vector<std::int32_t> pending = std::move(states_[r].pending);
    pending.clear();
    states_[r] = {.pending = std::move(pending)};
    runnable.push_back(r);
  }
  while (!runnable.empty()) {
    const int r = runnable.back();
    runnable.pop_back();
    states_[r].is_runnable = false;
    while (states_[r].position < kept[r].size()) {
      const std::int32_t id = kept[r][states_[r].position];
      if (!run_next(r, kept, gaps[r])) break;
      const int reader = graph_.readers[id];
      if (reader == OrderGraph::kNone || states_[reader].is_runnable) continue;
      states_[reader].is_runnable = true;
      runnable.push_back(reader);
    }
  }
  std::int64_t longest = 0;
  for (std::size_t r = 0; r < states_.size(); ++r) {
    if (states_[r].position < kept[r].size()) return kImpossible;
    while (has_pending(states_[r])) run_weight_grad(static_cast<int>(r));
    rank_times_[r] = states_[r].now - (graph_.objective == Objective::kSpan ? states_[r].start : 0);
    longest = std::max(longest, rank_times_[r]);
  }
  return longest;
}

std::vector<std::int32_t> FloatingOrder::path_to_end(const RankOrders& kept, int rank) const {
  std::vector<std::int32_t> path;
  if (kept[rank].empty()) return path;
  for (std::int32_t id = kept[rank].back(); id != OrderGraph::kNone; id = causes_[id]) path.push_back(id);
  return path;
}

RankOrders FloatingOrder::complete(const RankOrders& kept, const std::vector<GapRule>& gaps) {
  RankOrders completed(kept.size());
  completed_ = &completed;
  time(kept, gaps);
  completed_ = nullptr;
  return completed;
}

}}  // namespace plumb::schedules
