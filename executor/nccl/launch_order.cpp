#include "executor/nccl/launch_order.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "executor/nccl/matched_calls.h"

namespace plumb { inline namespace executor {
namespace {

using Ticks = std::int64_t;
constexpr Ticks kCall = 50;  // of NCCL; durations are round guesses, which decide about speed alone

Ticks duration_of(Op op) {
  switch (op) {
    case Op::kForward:
    case Op::kInputGrad:
    case Op::kWeightGrad:
    case Op::kRecompute:
      return 1000;
    case Op::kBackward:
      return 2000;
    default:
      return 100;
  }
}

class OneOrder {
 public:
  OneOrder(NcclOrder& order, const MatchedCalls& matched, const Schedule& schedule, const RankGrid& grid)
      : order_(order), schedule_(schedule), grid_(grid) {
    for (std::size_t rank = 0; rank < order.ranks.size(); ++rank) make_nodes(rank);
    parent_.resize(nodes_.size());
    std::iota(parent_.begin(), parent_.end(), 0);
    for (const std::vector<Participant>& all : matched.participants)
      for (const Participant& one : all) unite(node_of(all.front()), node_of(one));
    for (std::size_t node = 0; node < nodes_.size(); ++node) ++nodes_[root(node)].members;
    connect();
  }

  void apply() {
    play();
    std::size_t first = 0;
    for (NcclRank& rank : order_.ranks) {
      std::size_t end = first;
      while (end < nodes_.size() && nodes_[end].rank == nodes_[first].rank) ++end;
      reorder(rank, first, end);
      first = end;
    }
  }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// A call, or the calls of a group.
  struct Node {
    std::size_t rank = 0;
    std::size_t first = 0, end = 0;  // calls
    Ticks duration = 0;
    std::int32_t missing = 0;  // nodes that have to end before
    std::size_t members = 0;   // of a root: nodes that happen together
    std::size_t started = 0;   // of these
    std::int64_t number = kNever;
  };

  std::size_t node_of(const Participant& one) const {
    return node_of_call_[static_cast<std::size_t>(one.rank)][static_cast<std::size_t>(one.call)];
  }
  std::size_t root(std::size_t node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  void unite(std::size_t a, std::size_t b) { parent_[root(b)] = root(a); }

  void make_nodes(std::size_t rank) {
    const std::vector<NcclCall>& calls = order_.ranks[rank].calls;
    const auto pipeline = static_cast<std::size_t>(coordinates_of(grid_, static_cast<int>(rank)).pipeline);
    node_of_call_.emplace_back(calls.size());
    for (std::size_t i = 0; i < calls.size();) {
      Node node{.rank = rank, .first = i, .end = i + 1, .duration = kCall};
      if (calls[i].kind == NcclKind::kCompute) {
        const auto& actions = schedule_.ranks[pipeline];
        const auto action = static_cast<std::size_t>(calls[i].action);
        node.duration = action < actions.size() ? duration_of(actions[action].op) : 0;
      }
      while (calls[i].group != NcclCall::kNone && node.end < calls.size() && calls[node.end].group == calls[i].group)
        ++node.end;
      for (; i < node.end; ++i) node_of_call_[rank][i] = nodes_.size();
      nodes_.push_back(node);
    }
  }

  template <class Visit>
  void for_each_edge(Visit visit) {
    for (std::size_t rank = 0; rank < order_.ranks.size(); ++rank) {
      const NcclRank& list = order_.ranks[rank];
      std::vector<std::size_t> last;  // [stream] node
      const auto edge = [&](std::size_t from, std::size_t to) {
        if (from != to) visit(from, to);
      };
      for (std::size_t i = 0; i < list.calls.size(); ++i) {
        const NcclCall& call = list.calls[i];
        const auto stream = static_cast<std::size_t>(call.stream);
        if (last.size() <= stream) last.resize(stream + 1, nodes_.size());
        const std::size_t node = node_of_call_[rank][i];
        if (last[stream] < nodes_.size()) edge(last[stream], node);
        last[stream] = node;
        for (std::int32_t w = 0; w < call.waits; ++w)
          edge(node_of_call_[rank][static_cast<std::size_t>(list.waits[static_cast<std::size_t>(call.first_wait + w)])],
               node);
      }
    }
  }

  void connect() {
    first_edge_.assign(nodes_.size() + 1, 0);
    for_each_edge([&](std::size_t from, std::size_t) { ++first_edge_[from + 1]; });
    std::partial_sum(first_edge_.begin(), first_edge_.end(), first_edge_.begin());
    edges_.resize(first_edge_.back());
    std::vector<std::size_t> next = first_edge_;
    for_each_edge([&](std::size_t from, std::size_t to) {
      edges_[next[from]++] = to;
      ++nodes_[to].missing;
    });
    members_.resize(nodes_.size());
    for (std::size_t node = 0; node < nodes_.size(); ++node) members_[root(node)].push_back(node);
  }

  void play() {
    for (std::size_t node = 0; node < nodes_.size(); ++node)
      if (nodes_[node].missing == 0) ready_.push(node);
    while (true) {
      for (; !ready_.empty(); ready_.pop()) start(ready_.front());
      if (ends_.empty()) return;
      now_ = std::get<0>(ends_.top());
      const std::size_t ended = std::get<2>(ends_.top());
      ends_.pop();
      for (const std::size_t node : members_[ended])
        for (std::size_t edge = first_edge_[node]; edge < first_edge_[node + 1]; ++edge)
          if (--nodes_[edges_[edge]].missing == 0) ready_.push(edges_[edge]);
    }
  }

  void start(std::size_t node) {
    const std::size_t all = root(node);
    if (++nodes_[all].started < nodes_[all].members) return;
    for (const std::size_t member : members_[all]) nodes_[member].number = count_;
    ends_.emplace(now_ + nodes_[all].duration, count_++, all);
  }

  void reorder(NcclRank& rank, std::size_t first, std::size_t end) {
    std::vector<std::size_t> sorted(end - first);
    std::iota(sorted.begin(), sorted.end(), first);
    std::ranges::stable_sort(sorted, {}, [&](std::size_t node) { return nodes_[node].number; });
    std::vector<std::int32_t> place(rank.calls.size());
    NcclRank result;
    result.waits.reserve(rank.waits.size());
    for (const std::size_t node : sorted)
      for (std::size_t call = nodes_[node].first; call < nodes_[node].end; ++call) {
        place[call] = static_cast<std::int32_t>(result.calls.size());
        result.calls.push_back(rank.calls[call]);
      }
    for (NcclCall& call : result.calls) {
      const auto from = rank.waits.begin() + call.first_wait;
      call.first_wait = static_cast<std::int32_t>(result.waits.size());
      for (auto wait = from; wait != from + call.waits; ++wait)
        result.waits.push_back(place[static_cast<std::size_t>(*wait)]);
    }
    rank = std::move(result);
  }

  NcclOrder& order_;
  const Schedule& schedule_;
  const RankGrid& grid_;
  std::vector<Node> nodes_;
  std::vector<std::vector<std::size_t>> node_of_call_;  // [rank][call]
  std::vector<std::size_t> parent_;                     // union-find: nodes that happen together
  std::vector<std::vector<std::size_t>> members_;       // [root]
  std::vector<std::size_t> first_edge_, edges_;         // to what waits for a node
  std::queue<std::size_t> ready_;
  using End = std::tuple<Ticks, std::int64_t, std::size_t>;  // when, number, root
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  Ticks now_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace

void launch_in_one_order(NcclOrder& order, const Schedule& schedule, const RankGrid& grid) {
  const MatchedCalls matched = match_calls(order, 1);
  if (!matched.findings.empty()) return;
  OneOrder(order, matched, schedule, grid).apply();
}

}}  // namespace plumb::executor
