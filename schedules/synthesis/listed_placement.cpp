#include "schedules/synthesis/listed_placement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "schedules/bounds/lane_times.h"
#include "schedules/synthesis/list_scheduler.h"

namespace plumb { inline namespace schedules {
namespace {

constexpr int kMostCaps = 14;  // numbers of micro-batches (slices) under way that are tried

/// Returns numbers from 1 to `most`, closer to each other where they are small.
std::vector<double> caps_up_to(int most) {
  std::vector<double> caps;
  for (int k = 0; k < kMostCaps; ++k) {
    caps.push_back(std::pow(static_cast<double>(most), static_cast<double>(k) / (kMostCaps - 1)));
  }
  return caps;
}

/// Returns the time from a forward to the gradient that frees it, by position of a lane.
std::int64_t held_time(const LaneTimes& lane, std::size_t position) {
  return lane.first_input_grad[position] + lane.input_grad[position] + lane.weight_grad[position] -
         lane.first_forward[position];
}

/// Returns the forwards that each stage lets run ahead, `least` or more, where `cap` of them are under way at the first
/// of its lane.
std::vector<int> forwards_ahead(const std::vector<LaneTimes>& lanes, std::size_t stages, double cap, int least) {
  std::vector<int> most(stages, least);
  for (const LaneTimes& lane : lanes) {
    const auto whole = static_cast<double>(std::max<std::int64_t>(held_time(lane, 0), 1));
    for (std::size_t k = 0; k < lane.stages.size(); ++k) {
      const double share = static_cast<double>(held_time(lane, k)) / whole;
      most[static_cast<std::size_t>(lane.stages[k])] = std::max(least, static_cast<int>(std::ceil(cap * share - 1e-9)));
    }
  }
  return most;
}

}  // namespace

std::vector<Schedule> listed_orders(const OrderQuestion& question) {
  const std::vector<LaneTimes> lanes = lanes_of(question);
  const std::size_t stages = question.frame.stages.size();
  std::vector<int> earlier_first(stages), later_first(stages);
  for (const LaneTimes& lane : lanes) {
    for (std::size_t k = 0; k < lane.stages.size(); ++k) {
      earlier_first[static_cast<std::size_t>(lane.stages[k])] = 1 + static_cast<int>(k);
      later_first[static_cast<std::size_t>(lane.stages[k])] = static_cast<int>(lane.stages.size() - k);
    }
  }
  const std::vector<double> patiences = question.whole_backwards ? std::vector<double>{0} : std::vector<double>{0, 1};
  std::vector<Schedule> orders;
  std::vector<int> last_cap;
  for (const double cap : caps_up_to(question.frame.microbatches * question.slices)) {
    std::vector<int> most = forwards_ahead(lanes, stages, cap, question.slices);
    if (most == last_cap) continue;
    for (const std::vector<int>& urgency : {later_first, earlier_first}) {
      for (const double patience : patiences) {
        ListedOrder listed =
            list_schedule_below(std::numeric_limits<std::int64_t>::max(), question,
                                {.forward_urgency = urgency,
                                 .backward_urgency = std::vector<int>(stages, 0),
                                 .max_in_flight = most,
                                 .patience = std::vector<double>(static_cast<std::size_t>(question.ranks), patience)});
        if (!listed.is_deadlocked && listed.is_below) orders.push_back(std::move(listed.schedule));
      }
    }
    last_cap = std::move(most);
  }
  return orders;
}

}}  // namespace plumb::schedules
