#include "schedules/synthesis/paired_order.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "schedules/synthesis/order_graph.h"
#include "schedules/synthesis/timed_order.h"

namespace plumb { inline namespace schedules {
namespace {

/// Two neighbours of a rank's list, and whether the forward is the second of them.
struct Neighbors {
  std::size_t rank = 0;
  std::size_t position = 0;
  bool is_turned = false;
};

std::vector<Neighbors> gaining_neighbors(const OrderGraph& graph) {
  std::vector<Neighbors> found;
  for (std::size_t r = 0; r < graph.listed.size(); ++r) {
    const std::vector<std::int32_t>& order = graph.listed[r];
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      if (graph.joined[order[i]] && graph.can_pair(order[i], order[i + 1])) {
        ++i;
      } else if (graph.pair_gain(order[i], order[i + 1]) > 0) {
        found.push_back({.rank = r, .position = i});
      } else if (graph.pair_gain(order[i + 1], order[i]) > 0) {
        found.push_back({.rank = r, .position = i, .is_turned = true});
      }
    }
  }
  return found;
}

class Pairing {
 public:
  explicit Pairing(const OrderGraph& graph)
      : graph_(graph),
        timed_(graph),
        orders_(graph.listed),
        joined_(graph.joined),
        time_(timed_.time(orders_, joined_)) {}

  void join(const Neighbors& of) {
    std::vector<std::int32_t>& order = orders_[of.rank];
    if (of.is_turned) std::swap(order[of.position], order[of.position + 1]);
    joined_[order[of.position]] = 1;
  }

  void come_apart(const Neighbors& of) {
    std::vector<std::int32_t>& order = orders_[of.rank];
    joined_[order[of.position]] = 0;
    if (of.is_turned) std::swap(order[of.position], order[of.position + 1]);
  }

  /// True if a rank's memory holds its list.
  bool fits(std::size_t rank) const {
    std::int64_t held = 0;
    return graph_.max_bytes.empty() || std::ranges::all_of(orders_[rank], [&](std::int32_t id) {
             held += graph_.bytes_added[id];
             return held <= graph_.max_bytes[rank];
           });
  }

  /// True if the order is not longer than it was.
  bool keeps_time() {
    const std::int64_t time = timed_.time(orders_, joined_);
    if (time == TimedOrder::kDeadlock || time > time_) return false;
    time_ = time;
    return true;
  }

  bool is_in_pair(const Neighbors& of) const {
    const std::vector<std::int32_t>& order = orders_[of.rank];
    const std::size_t begin = of.position == 0 ? 0 : of.position - 1;
    return std::any_of(&order[begin], &order[of.position + 1] + 1,
                       [this](std::int32_t id) { return joined_[id] != 0; });
  }

  const RankOrders& orders() const { return orders_; }
  const Joined& joined() const { return joined_; }

 private:
  const OrderGraph& graph_;
  TimedOrder timed_;
  RankOrders orders_;
  Joined joined_;
  std::int64_t time_ = 0;
};

}  // namespace

Schedule paired_order(Schedule order, const OrderQuestion& question, std::size_t most_actions) {
  const OrderGraph graph(order, question);
  const std::vector<Neighbors> gaining = gaining_neighbors(graph);
  if (gaining.empty()) return order;
  Pairing all(graph);
  for (const Neighbors& of : gaining) {
    if (all.is_in_pair(of)) continue;
    all.join(of);
    if (!all.fits(of.rank)) all.come_apart(of);
  }
  if (all.keeps_time()) return in_order(std::move(order), graph, all.orders(), all.joined());
  if (graph.actions.size() > most_actions) return order;
  Pairing some(graph);
  for (const Neighbors& of : gaining) {
    if (some.is_in_pair(of)) continue;
    some.join(of);
    if (!some.fits(of.rank) || !some.keeps_time()) some.come_apart(of);
  }
  return in_order(std::move(order), graph, some.orders(), some.joined());
}

}}  // namespace plumb::schedules
