#include "schedules/bounds/rank_alone.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "schedules/bounds/bound_terms.h"

namespace plumb { inline namespace schedules {
namespace {

constexpr std::int64_t kUnknownStart = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kKindsOfPlace = 3;  // forward, input gradient and weight gradient of each place
constexpr std::int64_t kNoTail = std::numeric_limits<std::int64_t>::min() / 4;

/// A stage of the rank, with the ways that the rest of its lane makes between its actions.
struct AlonePlace {
  int microbatches = 0;
  bool is_first = false;  ///< of its lane on this rank
  bool is_last = false;
  std::int64_t durations[kKindsOfPlace] = {};
  std::int64_t bytes_added[kKindsOfPlace] = {};
  std::int64_t release = 0;     ///< of the first forward of its lane on this rank
  std::int64_t way_on = 0;      ///< from its forward's end to the next place's forward; to its input gradient, if last
  std::int64_t way_back = 0;    ///< from its input gradient's end to that of the place before
  std::int64_t round_trip = 0;  ///< from its forward's end to its input gradient
  std::int64_t tail = kNoTail;  ///< from its input gradient's end to the objective's
};

/// [place * kKindsOfPlace + kind] actions that have run.
using Counts = std::vector<int>;

/// The rank is free at the first and the objective ends no earlier than at the second. Behind them are the arrivals that
/// are not used up, by place: of forwards, where it is not the first of its lane, and of input gradients.
using Moments = std::vector<std::int64_t>;

std::vector<AlonePlace> places_of(const OrderQuestion& question, int rank) {
  std::vector<AlonePlace> places;
  const std::vector<LaneTimes> lanes = lanes_of(question);
  const bool is_span = question.objective == Objective::kSpan;
  for (const LaneTimes& lane : lanes) {
    const std::size_t first_of_lane = places.size();
    std::int64_t base = -1;  // from it on the objective counts
    std::size_t before = 0;
    for (std::size_t k = 0; k < lane.stages.size(); ++k) {
      if (lane.ranks[k] != rank || lane.microbatches == 0) continue;
      if (base < 0) base = is_span ? lane.first_forward[k] : 0;
      const int stage = lane.stages[k];
      AlonePlace place{.microbatches = static_cast<int>(lane.microbatches),
                       .is_first = places.size() == first_of_lane,
                       .durations = {lane.forward[k], lane.input_grad[k], lane.weight_grad[k]},
                       .release = is_span ? 0 : lane.first_forward[k],
                       .round_trip = lane.first_input_grad[k] - lane.first_forward[k] - lane.forward[k]};
      const Op input_grad = question.whole_backwards ? Op::kBackward : Op::kInputGrad;
      place.bytes_added[0] = bytes_added(question.memory, {.op = Op::kForward, .stage = stage});
      place.bytes_added[1] = bytes_added(question.memory, {.op = input_grad, .stage = stage});
      if (!question.whole_backwards) {
        place.bytes_added[2] = bytes_added(question.memory, {.op = Op::kWeightGrad, .stage = stage});
      }
      const BoundTail& tail = lane.tails[k];
      if (!is_span || lanes.size() == 1) place.tail = tail.way - lane.uncounted[tail.to] + base;
      if (!place.is_first) {
        places.back().way_on = lane.first_forward[k] - lane.first_forward[before] - lane.forward[before];
        place.way_back = lane.first_input_grad[before] - lane.first_input_grad[k] - lane.input_grad[k];
      }
      places.push_back(place);
      before = k;
    }
    if (places.size() > first_of_lane) {
      places.back().is_last = true;
      places.back().way_on = places.back().round_trip;
    }
  }
  return places;
}

class RankAlone {
 public:
  RankAlone(const OrderQuestion& question, int rank, std::int64_t most_time, std::int64_t most_comparisons)
      : places_(places_of(question, rank)),
        max_bytes_(question.memory.max_bytes.empty() ? kUnknownStart
                                                     : question.memory.max_bytes[static_cast<std::size_t>(rank)]),
        kinds_(question.whole_backwards ? kKindsOfPlace - 1 : kKindsOfPlace),
        most_time_(most_time),
        comparisons_left_(most_comparisons) {}

  /// Returns the time of the shortest order, at most `most_time`; -1 if that takes too many partial orders.
  std::int64_t shortest() {
    std::int64_t layers = 0;
    for (const AlonePlace& place : places_) layers += static_cast<std::int64_t>(kinds_) * place.microbatches;
    met_[Counts(places_.size() * kKindsOfPlace, 0)] = {{0, 0}};
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const std::map<Counts, std::vector<Moments>> last = std::exchange(met_, {});
      for (const auto& [counts, states] : last) {
        look_up(counts);
        for (const Moments& state : states) {
          if (comparisons_left_ < 0) return -1;
          extend(counts, state);
        }
      }
    }
    std::int64_t shortest = most_time_;
    for (const auto& [counts, states] : met_) {
      for (const Moments& state : states) shortest = std::min(shortest, std::max(state[0], state[1]));
    }
    return shortest;
  }

  std::int64_t work() const {
    std::int64_t work = 0;
    for (const AlonePlace& place : places_) {
      for (const std::int64_t duration : place.durations) work += place.microbatches * duration;
    }
    return work;
  }

 private:
  /// The arrivals of a place: where they begin, and how many they are.
  struct Arrivals {
    std::size_t forward = 0;
    std::size_t input_grad = 0;
    int forwards = 0;
    int input_grads = 0;
  };

  struct Next {
    std::size_t place = 0;
    std::size_t kind = 0;
    std::int64_t start = 0;
  };

  /// Looks up what all partial orders with these actions share.
  void look_up(const Counts& counts) {
    arrivals_.assign(places_.size(), {});
    held_bytes_ = 0;
    std::size_t at = 2;
    for (std::size_t x = 0; x < places_.size(); ++x) {
      const int* done = &counts[x * kKindsOfPlace];
      Arrivals& arrivals = arrivals_[x];
      arrivals.forwards = places_[x].is_first ? 0 : done[0 - static_cast<std::ptrdiff_t>(kKindsOfPlace)] - done[0];
      arrivals.input_grads = (places_[x].is_last ? done[0] : done[kKindsOfPlace + 1]) - done[1];
      arrivals.forward = at;
      arrivals.input_grad = at + static_cast<std::size_t>(arrivals.forwards);
      at = arrivals.input_grad + static_cast<std::size_t>(arrivals.input_grads);
      for (std::size_t kind = 0; kind < kinds_; ++kind) held_bytes_ += done[kind] * places_[x].bytes_added[kind];
    }
  }

  bool takes_shared_memory(std::size_t x, std::size_t kind) const {
    return kind == 0 && places_.size() > 1 && max_bytes_ != kUnknownStart && places_[x].bytes_added[0] > 0;
  }

  /// Returns when an action could start, or kUnknownStart.
  std::int64_t start_of(const Counts& counts, const Moments& state, std::size_t x, std::size_t kind) const {
    const AlonePlace& place = places_[x];
    const int* done = &counts[x * kKindsOfPlace];
    if (done[kind] == place.microbatches) return kUnknownStart;
    if (kind == 2) return done[1] > done[2] ? state[0] : kUnknownStart;
    if (kind == 1)
      return arrivals_[x].input_grads > 0 ? std::max(state[0], state[arrivals_[x].input_grad]) : kUnknownStart;
    if (place.bytes_added[0] > max_bytes_ - held_bytes_) return kUnknownStart;
    if (place.is_first) return std::max(state[0], place.release);
    return arrivals_[x].forwards > 0 ? std::max(state[0], state[arrivals_[x].forward]) : kUnknownStart;
  }

  void extend(const Counts& counts, const Moments& state) {
    std::int64_t first_end = kUnknownStart;
    nexts_.clear();
    for (std::size_t x = 0; x < places_.size(); ++x) {
      for (std::size_t kind = 0; kind < kinds_; ++kind) {
        const std::int64_t start = start_of(counts, state, x, kind);
        if (start == kUnknownStart) continue;
        nexts_.push_back({.place = x, .kind = kind, .start = start});
        if (!takes_shared_memory(x, kind)) first_end = std::min(first_end, start + places_[x].durations[kind]);
      }
    }
    for (const Next& next : nexts_) {
      const bool is_first = next.start + places_[next.place].durations[next.kind] == first_end;
      if (next.start < first_end || is_first) run(counts, state, next);
    }
  }

  void run(const Counts& counts, const Moments& state, const Next& next) {
    const AlonePlace& place = places_[next.place];
    const Arrivals& arrivals = arrivals_[next.place];
    const std::int64_t end = next.start + place.durations[next.kind];
    Counts more = counts;
    ++more[next.place * kKindsOfPlace + next.kind];
    Moments moments = state;
    moments[0] = end;
    const auto at = [&moments](std::size_t index) { return moments.begin() + static_cast<std::ptrdiff_t>(index); };
    // A new arrival stands behind those of its place and kind, and the one that is used up goes.
    if (next.kind == 0) {
      const std::size_t to = place.is_last ? arrivals.input_grad + static_cast<std::size_t>(arrivals.input_grads)
                                           : arrivals_[next.place + 1].input_grad;
      moments.insert(at(to), end + place.way_on);
      if (!place.is_first) moments.erase(at(arrivals.forward));
    } else if (next.kind == 1) {
      moments[1] = std::max(moments[1], end + place.tail);
      moments.erase(at(arrivals.input_grad));
      if (!place.is_first) {
        const Arrivals& before = arrivals_[next.place - 1];
        moments.insert(at(before.input_grad + static_cast<std::size_t>(before.input_grads)), end + place.way_back);
      }
    }
    for (std::size_t k = 2; k < moments.size(); ++k) moments[k] = std::max(moments[k], end);
    if (least_end(more, moments) < most_time_) keep(met_[std::move(more)], std::move(moments));
  }

  /// Returns a time that no order beats which begins like that.
  std::int64_t least_end(const Counts& counts, const Moments& moments) const {
    std::int64_t work = 0;
    std::int64_t least = moments[1];
    for (std::size_t x = 0; x < places_.size(); ++x) {
      const AlonePlace& place = places_[x];
      const int* done = &counts[x * kKindsOfPlace];
      const std::int64_t forwards = (place.microbatches - done[0]) * place.durations[0];
      const std::int64_t input_grads = (place.microbatches - done[1]) * place.durations[1];
      work += forwards + input_grads + (place.microbatches - done[2]) * place.durations[2];
      if (done[1] < place.microbatches) least = std::max(least, moments[0] + forwards + input_grads + place.tail);
      if (done[0] == place.microbatches) continue;
      least = std::max(least, moments[0] + forwards + place.round_trip + place.durations[1] + place.tail);
    }
    return std::max(least, moments[0] + work);
  }

  /// Adds moments to those with the same actions, unless others are all as early.
  void keep(std::vector<Moments>& states, Moments moments) {
    comparisons_left_ -= 1 + std::ssize(states);
    const auto no_later = [](const Moments& a, const Moments& b) {
      return std::ranges::equal(a, b, [](std::int64_t one, std::int64_t other) { return one <= other; });
    };
    if (std::ranges::any_of(states, [&](const Moments& other) { return no_later(other, moments); })) return;
    std::erase_if(states, [&](const Moments& other) { return no_later(moments, other); });
    states.push_back(std::move(moments));
  }

  std::vector<AlonePlace> places_;
  std::int64_t max_bytes_;
  std::size_t kinds_;
  std::int64_t most_time_;
  std::int64_t comparisons_left_;
  std::map<Counts, std::vector<Moments>> met_;
  std::vector<Arrivals> arrivals_;  ///< [place]
  std::int64_t held_bytes_ = 0;
  std::vector<Next> nexts_;
};

}  // namespace

std::string rank_alone_reason(int rank) {
  return fmt::format("the work and the memory of rank {} alone", rank);
}

LowerBound rank_alone_bound(const OrderQuestion& question, int rank, std::int64_t most_time,
                            std::int64_t most_comparisons) {
  RankAlone alone(question, rank, most_time, most_comparisons);
  const std::int64_t shortest = alone.shortest();
  if (shortest < alone.work()) return {};
  BoundTerms terms(rank_alone_reason(rank));
  terms.add(alone.work(), fmt::format("of work on rank {}", rank));
  terms.add(shortest - alone.work(),
            fmt::format("of idling on rank {} and of the ways to it and back: no order of its own has less", rank));
  return std::move(terms).sum();
}

}}  // namespace plumb::schedules
