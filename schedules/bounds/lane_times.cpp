#include "schedules/bounds/lane_times.h"

#include <algorithm>

#include "schedules/time.h"

namespace plumb { inline namespace schedules {
namespace {

/// Refuses lanes that no order finishes before kLatestMoment. Any order does all the work of a rank, and
/// takes one micro-batch there and back: if both together are more than twice kLatestMoment, one of them ends
/// later.
void require_early(const std::vector<LaneTimes>& lanes, int ranks) {
  std::vector<double> work(static_cast<std::size_t>(ranks), 0);
  double longest_way = 0;
  for (const LaneTimes& lane : lanes) {
    double way = 0;
    for (std::size_t k = 0; k < lane.stages.size(); ++k) {
      const auto of_one = static_cast<double>(lane.forward[k]) + static_cast<double>(lane.input_grad[k]);
      way += of_one + static_cast<double>(lane.hop.activation[k]) + static_cast<double>(lane.hop.gradient[k]);
      work[lane.ranks[k]] +=
          static_cast<double>(lane.microbatches) * (of_one + static_cast<double>(lane.weight_grad[k]));
    }
    longest_way = std::max(longest_way, way);
  }
  const double least = longest_way + *std::ranges::max_element(work);
  if (least > 2 * static_cast<double>(kLatestMoment.count())) refuse_late_moment("the schedule");
}

void add_position(LaneTimes& lane, const OrderQuestion& question, const OrderCosts& costs, int stage, int next) {
  const std::vector<StagePlace>& places = question.frame.stages;
  const std::int64_t w = costs.weight_grad[stage];
  lane.stages.push_back(stage);
  lane.ranks.push_back(places[stage].rank);
  lane.forward.push_back(costs.forward[stage]);
  lane.input_grad.push_back(costs.input_grad[stage] + (question.whole_backwards ? w : 0));
  lane.weight_grad.push_back(question.whole_backwards ? 0 : w);
  const bool crosses = next >= 0 && places[next].rank != places[stage].rank;
  const bool waits = crosses && costs.has_busy_links();
  lane.hop.activation.push_back(crosses ? costs.hop.activation[stage] : 0);
  lane.hop.gradient.push_back(crosses ? costs.hop.gradient[stage] : 0);
  lane.hop_busy.activation.push_back(waits ? costs.hop_busy.activation[stage] : 0);
  lane.hop_busy.gradient.push_back(waits ? costs.hop_busy.gradient[stage] : 0);
}

void add_times(LaneTimes& lane, Objective objective) {
  const std::size_t positions = lane.stages.size();
  std::int64_t start = 0;
  for (std::size_t k = 0; k < positions; ++k) {
    lane.first_forward.push_back(start);
    start += lane.forward[k] + lane.hop.activation[k];
  }
  lane.first_input_grad.assign(positions, 0);
  for (std::size_t k = positions; k-- > 0;) {
    lane.first_input_grad[k] = start;
    if (k > 0) start += lane.input_grad[k] + lane.hop.gradient[k - 1];
  }
  for (std::size_t k = 0; k < positions; ++k) {
    const auto first_of_rank = std::ranges::find(lane.ranks, lane.ranks[k]) - lane.ranks.begin();
    lane.uncounted.push_back(objective == Objective::kSpan ? lane.first_forward[first_of_rank] : 0);
  }
  for (std::size_t k = 0; k < positions; ++k) {
    BoundTail best{.way = lane.weight_grad[k], .to = static_cast<int>(k)};
    if (k > 0) {
      const BoundTail before = lane.tails[k - 1];
      const std::int64_t way = lane.hop.gradient[k - 1] + lane.input_grad[k - 1] + before.way;
      if (way - lane.uncounted[before.to] > best.way - lane.uncounted[k]) best = {.way = way, .to = before.to};
    }
    lane.tails.push_back(best);
  }
}

}  // namespace

std::vector<LaneTimes> lanes_of(const OrderQuestion& question) {
  const StageNeighbors neighbors = stage_neighbors(question.frame);
  const OrderCosts costs = costs_below_pairs(question.costs, question.frame.stages);
  std::vector<LaneTimes> lanes;
  int count = 1;
  for (const StagePlace& place : question.frame.stages) count = std::max(count, place.lane + 1);
  for (int s = 0; s < static_cast<int>(question.frame.stages.size()); ++s) {
    if (neighbors.predecessor[s] >= 0) continue;
    const int lane_number = question.frame.stages[s].lane;
    const int m = question.frame.microbatches;
    LaneTimes lane{.microbatches = question.slices * (m * (lane_number + 1) / count - m * lane_number / count)};
    for (int at = s; at >= 0; at = neighbors.successor[at])
      add_position(lane, question, costs, at, neighbors.successor[at]);
    lane.slice_wait = (question.slices - 1) * *std::ranges::max_element(lane.forward);
    lanes.push_back(std::move(lane));
  }
  require_early(lanes, question.ranks);
  for (LaneTimes& lane : lanes) add_times(lane, question.objective);
  return lanes;
}

}}  // namespace plumb::schedules
