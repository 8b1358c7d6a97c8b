#include "simulator/network/flow/flows.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace plumb { inline namespace simulator {
namespace {

/// A flow with less work than this is done. The number is far below a picosecond, far above the rounding of doubles,
/// and no simple fraction, so that shares such as 1/2 and 2/3 of whole picoseconds never stand right at the border.
constexpr double kNoWorkPs = 0.000731;

/// Returns the whole picoseconds that the work lasts at that speed, or kLatestMoment, at which an engine ends, if it is
/// longer.
SimTime lasting(double work_ps, double speed) {
  return at_most_latest(std::max(0.0, std::ceil(work_ps / speed - kNoWorkPs)));
}

}  // namespace

Flows::Flows(std::vector<double> capacities, std::vector<Route> routes)
    : capacities_(std::move(capacities)),
      routes_(std::move(routes)),
      on_link_(capacities_.size()),
      link_mark_(capacities_.size(), 0),
      local_link_(capacities_.size(), 0) {}

void Flows::record(DerivativeTape& tape, std::int32_t capacity) {
  assert(next_order_ == 0);
  derivatives_.emplace(tape, capacity);
}

bool Flows::later(const Entry& a, const Entry& b) {
  return a.end != b.end ? a.end > b.end : a.order > b.order;
}

void Flows::start(const FlowStart& flow, SimTime now) {
  assert(flow.alone > SimTime{0} && now >= now_);
  if (now > now_) settle();  // flows that changed earlier have shared since then
  now_ = now;
  std::int32_t number = static_cast<std::int32_t>(slots_.size());
  if (free_slots_.empty()) {
    slots_.emplace_back();
  } else {
    number = free_slots_.back();
    free_slots_.pop_back();
  }
  Slot& slot = slots_[number];
  slot.id = flow.id;
  slot.route = flow.route;
  slot.active = true;
  slot.cap = flow.cap_bytes_per_second;
  slot.speed = 0;
  slot.work_left_ps = static_cast<double>(flow.alone.count());
  slot.end = kLatestMoment;  // until it has a rate
  slot.since = now;
  slot.order = next_order_++;
  const std::vector<LinkUse>& uses = routes_[flow.route].uses;
  slot.places.resize(uses.size());
  for (std::size_t u = 0; u < uses.size(); ++u) {
    slot.places[u] = static_cast<std::int32_t>(on_link_[uses[u].link].size());
    on_link_[uses[u].link].push_back({number, static_cast<std::int32_t>(u)});
  }
  if (derivatives_) derivatives_->start(number, flow.alone, flow.alone_number, flow.cap_number);
  dirty_slots_.push_back(number);
  ++in_flight_;
}

void Flows::remove(std::int32_t number, DerivativeTape::Node at) {
  Slot& slot = slots_[number];
  const std::vector<LinkUse>& uses = routes_[slot.route].uses;
  for (std::size_t u = 0; u < uses.size(); ++u) {
    std::vector<OnLink>& list = on_link_[uses[u].link];
    const OnLink last = list.back();
    list[slot.places[u]] = last;
    slots_[last.slot].places[last.use] = slot.places[u];
    list.pop_back();
    if (list.empty()) continue;
    dirty_links_.push_back(uses[u].link);
    if (derivatives_) dirty_nodes_.push_back(at);
  }
  ++slot.version;
  slot.active = false;
  free_slots_.push_back(number);
  --in_flight_;
}

/// Gathers all flows that are linked to `first` by shared links, and marks them.
void Flows::gather_component(std::int32_t first) {
  component_.assign(1, first);
  component_links_.clear();
  slots_[first].mark = mark_;
  for (std::size_t i = 0; i < component_.size(); ++i) {
    for (const LinkUse& use : routes_[slots_[component_[i]].route].uses) {
      if (link_mark_[use.link] == mark_) continue;
      link_mark_[use.link] = mark_;
      local_link_[use.link] = static_cast<std::int32_t>(component_links_.size());
      component_links_.push_back(use.link);
      for (const OnLink& other : on_link_[use.link]) {
        if (slots_[other.slot].mark == mark_) continue;
        slots_[other.slot].mark = mark_;
        component_.push_back(other.slot);
      }
    }
  }
}

void Flows::set_speed(Slot& slot, double speed) {
  if (speed == slot.speed) return;
  slot.work_left_ps -= slot.speed * static_cast<double>((now_ - slot.since).count());
  slot.since = now_;
  slot.speed = speed;
  slot.end = now_ + lasting(slot.work_left_ps, speed);
}

/// Poses the problem of the gathered component's rates.
void Flows::pose_problem() {
  problem_.capacities.clear();
  problem_.caps.clear();
  problem_.weights.clear();
  problem_.uses.clear();
  problem_.first_use.assign(1, 0);
  for (const std::int32_t link : component_links_) problem_.capacities.push_back(capacities_[link]);
  for (const std::int32_t number : component_) {
    const Slot& slot = slots_[number];
    const Route& route = routes_[slot.route];
    problem_.caps.push_back(slot.cap);
    problem_.weights.push_back(route.weight);
    for (const LinkUse& use : route.uses) problem_.uses.push_back({local_link_[use.link], use.share});
    problem_.first_use.push_back(static_cast<std::int32_t>(problem_.uses.size()));
  }
}

/// Gives the gathered component new rates, and puts its first end into the heap.
void Flows::share_component(DerivativeTape::Node since) {
  if (component_.size() == 1) {
    Slot& slot = slots_[component_.front()];
    double rate = slot.cap;
    for (const LinkUse& use : routes_[slot.route].uses) {
      const double most = capacities_[use.link] / use.share;
      if (most * (1 + 1e-12) < rate) rate = most;
    }
    set_speed(slot, rate == slot.cap ? 1.0 : rate / slot.cap);
  } else {
    pose_problem();
    const std::vector<double>& rates = solver_.solve(problem_);
    for (std::size_t i = 0; i < component_.size(); ++i) {
      Slot& slot = slots_[component_[i]];
      set_speed(slot, rates[i] == slot.cap ? 1.0 : rates[i] / slot.cap);
    }
  }
  if (derivatives_) {
    if (component_.size() == 1) pose_problem();
    const std::vector<double>& rates = solver_.solve(problem_);
    derivatives_->share({.flows = component_,
                         .links = component_links_,
                         .problem = problem_,
                         .held_by = solver_.held_by(),
                         .filled = solver_.filled(),
                         .rates = rates},
                        now_, since);
  }
  assert(!component_.empty());
  std::int32_t first = component_.front();
  for (const std::int32_t number : component_) {
    Slot& slot = slots_[number];
    ++slot.version;
    if (slot.end < slots_[first].end || (slot.end == slots_[first].end && slot.order < slots_[first].order))
      first = number;
  }
  heap_.push_back({slots_[first].end, slots_[first].order, first, slots_[first].version});
  std::ranges::push_heap(heap_, later);
}

void Flows::settle() {
  if (dirty_slots_.empty() && dirty_links_.empty()) return;
  ++mark_;
  for (std::size_t i = 0; i < dirty_links_.size(); ++i) {
    const std::int32_t link = dirty_links_[i];
    if (link_mark_[link] == mark_ || on_link_[link].empty()) continue;
    gather_component(on_link_[link].front().slot);
    share_component(derivatives_ ? dirty_nodes_[i] : DerivativeTape::kConstant);
  }
  for (const std::int32_t number : dirty_slots_) {
    if (slots_[number].mark == mark_ || !slots_[number].active) continue;
    gather_component(number);
    share_component(derivatives_ ? derivatives_->start_of(number) : DerivativeTape::kConstant);
  }
  dirty_links_.clear();
  dirty_nodes_.clear();
  dirty_slots_.clear();
}

void Flows::drop_outdated() {
  while (!heap_.empty() && heap_.front().version != slots_[heap_.front().slot].version) {
    std::ranges::pop_heap(heap_, later);
    heap_.pop_back();
  }
}

std::optional<SimTime> Flows::next_end() {
  settle();
  drop_outdated();
  if (heap_.empty()) return std::nullopt;
  return heap_.front().end;
}

const std::vector<std::int32_t>& Flows::take_ended() {
  const std::optional<SimTime> end = next_end();
  assert(end);
  now_ = *end;
  ended_.clear();
  ended_nodes_.clear();
  while (!heap_.empty() && heap_.front().end == now_) {
    ++mark_;
    gather_component(heap_.front().slot);
    ended_slots_.clear();
    for (const std::int32_t number : component_) {
      if (slots_[number].end == now_) ended_slots_.push_back(number);
    }
    std::ranges::sort(ended_slots_, {}, [&](std::int32_t number) { return slots_[number].order; });
    for (const std::int32_t number : ended_slots_) {
      ended_.push_back(slots_[number].id);
      DerivativeTape::Node at = DerivativeTape::kConstant;
      if (derivatives_) ended_nodes_.push_back(at = derivatives_->end(number));
      remove(number, at);
    }
    drop_outdated();
  }
  return ended_;
}

std::vector<double> Flows::link_rates() {
  settle();
  std::vector<double> rates(capacities_.size(), 0.0);
  for (std::size_t link = 0; link < capacities_.size(); ++link) {
    for (const OnLink& flow : on_link_[link]) {
      const Slot& slot = slots_[flow.slot];
      rates[link] += routes_[slot.route].uses[flow.use].share * slot.speed * slot.cap;
    }
  }
  return rates;
}

}}  // namespace plumb::simulator
