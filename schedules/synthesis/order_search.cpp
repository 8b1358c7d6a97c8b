#include "schedules/synthesis/order_search.h"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "schedules/synthesis/floating_order.h"

namespace plumb { inline namespace schedules {
namespace {

class Search {
 public:
  Search(const OrderGraph& graph, const OrderSearch& search, int stages, int slices)
      : graph_(graph),
        search_(search),
        slices_(slices),
        timed_(graph),
        random_(search.seed),
        last_seen_(static_cast<std::size_t>(2 * stages)),
        orders_(timed_.without_weight_grads()),
        gaps_(orders_.size(), {search.least_gap_ratio}) {}

  /// Returns the shortest time, or kImpossible; best_order() has its order.
  std::int64_t run(std::int64_t threshold_unit) {
    best_time_ = timed_.time(orders_, gaps_);
    if (best_time_ == FloatingOrder::kImpossible) return best_time_;
    best_ = orders_;
    best_gaps_ = gaps_;
    std::int64_t energy = energy_of(best_time_);
    find_paths();
    const double first_threshold = search_.first_threshold * static_cast<double>(threshold_unit);
    constexpr int kStepsBetweenQuestions = 64;  // whether the search is stopped
    for (int step = 0; step < search_.steps && best_time_ > search_.goal; ++step) {
      if (step % kStepsBetweenQuestions == 0 && search_.is_stopped && search_.is_stopped()) break;
      const int rank = change();
      if (rank == OrderGraph::kNone) continue;
      const std::int64_t time = is_ascending(orders_[rank]) ? timed_.time(orders_, gaps_) : FloatingOrder::kImpossible;
      const double threshold = first_threshold * (search_.steps - step) / search_.steps;
      if (time == FloatingOrder::kImpossible ||
          static_cast<double>(energy_of(time)) > static_cast<double>(energy) + threshold) {
        std::swap(orders_[rank], saved_order_);
        gaps_[rank] = saved_gap_;
        continue;
      }
      energy = energy_of(time);
      find_paths();
      if (time < best_time_) {
        best_time_ = time;
        best_ = orders_;
        best_gaps_ = gaps_;
      }
    }
    return best_time_;
  }

  RankOrders best_order() { return timed_.complete(best_, best_gaps_); }

 private:
  std::ptrdiff_t below(std::ptrdiff_t n) {
    return static_cast<std::ptrdiff_t>(random_() % static_cast<std::uint64_t>(n));
  }

  /// The longest time of a rank decides; the mean of all tells apart orders that are equally long.
  std::int64_t energy_of(std::int64_t time) const {
    const std::int64_t ranks = std::ssize(timed_.rank_times());
    std::int64_t mean = 0;  // mean of the sum, which may be more than 64 bits hold
    std::int64_t rest = 0;
    for (const std::int64_t of_rank : timed_.rank_times()) {
      mean += of_rank / ranks;
      rest += of_rank % ranks;
    }
    return time + mean + rest / ranks;
  }

  /// Finds the paths to the end of the rank with the longest time, and of any rank: the next steps choose
  /// from them.
  void find_paths() {
    const auto longest = std::ranges::max_element(timed_.rank_times()) - timed_.rank_times().begin();
    paths_[0] = timed_.path_to_end(orders_, static_cast<int>(longest));
    paths_[1] = timed_.path_to_end(orders_, static_cast<int>(below(std::ssize(orders_))));
  }

  std::pair<Op, int> kind(std::int32_t id) const { return {graph_.actions[id].op, graph_.actions[id].stage}; }

  void save(int rank) {
    saved_order_ = orders_[rank];
    saved_gap_ = gaps_[rank];
  }

  /// Changes one rank and returns it; kNone if nothing changed.
  int change() {
    constexpr int kGapSteps = 8;
    if (below(10) == 0) {
      const int rank = static_cast<int>(below(std::ssize(orders_)));
      save(rank);
      gaps_[rank].least_gap_ratio = static_cast<double>(below(kGapSteps + 1)) / kGapSteps;
      return rank;
    }
    const std::vector<std::int32_t>& path = paths_[below(2)];
    if (path.empty()) return OrderGraph::kNone;
    const std::int32_t chosen = path[below(std::ssize(path))];
    const int rank = graph_.ranks[chosen];
    const std::vector<std::int32_t>& order = orders_[rank];
    const std::ptrdiff_t from = std::ranges::find(order, chosen) - order.begin();
    const std::ptrdiff_t leap = below(2) == 0 ? below(9) - 4 : 2 * below(2) - 1;
    const std::ptrdiff_t to = std::clamp<std::ptrdiff_t>(from + leap, 0, std::ssize(order) - 1);
    if (to == from) return OrderGraph::kNone;
    save(rank);
    if (below(2) == 0) {
      shift(orders_[rank], from, to);
    } else {
      shift_alike(orders_[rank], from, to);
    }
    return rank;
  }

  static void shift(std::vector<std::int32_t>& order, std::ptrdiff_t from, std::ptrdiff_t to) {
    const auto begin = order.begin();
    if (from < to) std::rotate(begin + from, begin + from + 1, begin + to + 1);
    if (to < from) std::rotate(begin + to, begin + from, begin + from + 1);
  }

  /// Makes the same shift at the next few, or all, places ahead or behind where two such actions stand that far apart.
  void shift_alike(std::vector<std::int32_t>& order, std::ptrdiff_t from, std::ptrdiff_t to) {
    const auto moved = kind(order[from]);
    const auto passed = kind(order[to]);
    const std::ptrdiff_t leap = to - from;
    const std::ptrdiff_t step = below(2) == 0 ? 1 : -1;
    const std::size_t most = below(2) == 0 ? order.size() : static_cast<std::size_t>(1 + below(8));
    std::vector<std::ptrdiff_t> places;
    for (std::ptrdiff_t i = from; i >= 0 && i < std::ssize(order) && places.size() < most; i += step) {
      const std::ptrdiff_t other = i + leap;
      if (other < 0 || other >= std::ssize(order)) continue;
      if (kind(order[i]) == moved && kind(order[other]) == passed) places.push_back(i);
    }
    // The places that an earlier shift would displace come last.
    std::ranges::sort(places);
    if (leap > 0) std::ranges::reverse(places);
    for (const std::ptrdiff_t place : places) shift(order, place, place + leap);
  }

  /// True if the micro-batches, and the slices in the order in which they come, ascend by stage and direction.
  bool is_ascending(const std::vector<std::int32_t>& order) {
    std::ranges::fill(last_seen_, -1);
    for (const std::int32_t id : order) {
      const Action& action = graph_.actions[id];
      const bool forward = action.op == Op::kForward;
      int& last = last_seen_[2 * action.stage + (forward ? 0 : 1)];
      const int here = action.microbatch * slices_ + (forward ? action.part : slices_ - 1 - action.part);
      if (here <= last) return false;
      last = here;
    }
    return true;
  }

  const OrderGraph& graph_;
  const OrderSearch& search_;
  int slices_;
  FloatingOrder timed_;
  std::mt19937_64 random_;
  std::vector<int> last_seen_;  ///< [2 * stage + direction]
  RankOrders orders_;
  std::vector<GapRule> gaps_;
  std::array<std::vector<std::int32_t>, 2> paths_;
  std::vector<std::int32_t> saved_order_;
  GapRule saved_gap_;
  std::int64_t best_time_ = FloatingOrder::kImpossible;
  RankOrders best_;
  std::vector<GapRule> best_gaps_;
};

}  // namespace

FoundOrder search_order(const Schedule& schedule, const OrderQuestion& question, const OrderSearch& search) {
  const OrderGraph graph(schedule, question);
  const OrderCosts& costs = question.costs;
  Search run(graph, search, static_cast<int>(schedule.stages.size()), question.slices);
  const std::int64_t time = run.run(costs.forward.front() + costs.input_grad.front() + costs.weight_grad.front());
  if (time == FloatingOrder::kImpossible) return {.schedule = schedule};
  return {.schedule = in_order(schedule, graph, run.best_order()), .time = time};
}

}}  // namespace plumb::schedules
