#include "simulator/network/engine/stretch_run.h"

#include <algorithm>
#include <utility>

namespace plumb { inline namespace simulator {

StretchRun::StretchRun(const EventParts& parts, int ranks, std::function<void(std::int32_t)> ended,
                       std::function<void(std::int32_t, SimTime)> complete)
    : parts_(parts),
      ranks_(ranks),
      instances_(parts.program.actions * parts.network.replicas),
      ended_(std::move(ended)),
      complete_(std::move(complete)) {}

StretchRun::Progress& StretchRun::progress_of(std::int32_t instance) {
  return progress_[static_cast<std::size_t>(replica_of(parts_.program, instance)) * ranks_ +
                   parts_.program.rank[action_of(parts_.program, instance)]];
}

std::int32_t StretchRun::instance_of(int replica, std::int32_t instance) const {
  return replica * parts_.program.actions + action_of(parts_.program, instance);
}

void StretchRun::begin(std::int32_t instance, std::int32_t plan, SimTime now) {
  if (progress_.empty()) progress_.resize(static_cast<std::size_t>(ranks_) * parts_.network.replicas);
  Progress& progress = progress_of(instance);
  progress.phase = parts_.program.stretches.first_phase[plan];
  progress.last_phase = parts_.program.stretches.first_phase[plan + 1];
  complete_(instance, SimTime{0});
  begin_phase(instance, progress, now);
}

void StretchRun::begin_phase(std::int32_t instance, Progress& progress, SimTime now) {
  const Phase& phase = parts_.program.stretches.phases[progress.phase];
  progress.open_lanes = static_cast<int>(kLanes);
  std::copy_n(phase.first.begin(), kLanes, progress.at.begin());
  go_on(instance, progress, LaneKind::kBlocking, now);
  go_on(instance, progress, LaneKind::kBeside, now);
}

void StretchRun::go_on(std::int32_t instance, Progress& progress, LaneKind lane, SimTime now) {
  const auto l = static_cast<std::size_t>(lane);
  if (progress.at[l] < parts_.program.stretches.phases[progress.phase].first[l + 1]) {
    begin_stretch(instance, lane, progress.at[l], now);
  } else if (--progress.open_lanes == 0) {
    ++progress.phase == progress.last_phase ? ended_(instance) : begin_phase(instance, progress, now);
  }
}

void StretchRun::begin_stretch(std::int32_t instance, LaneKind lane, std::int32_t number, SimTime now) {
  const Stretch& stretch = parts_.program.stretches.stretches[number];
  if (!stretch.computes) {
    begin_collective(instance, lane, number, now);
    return;
  }
  const ComputeWork work{.work = stretch.lasts,
                         .number = parts_.numbers.stretch + number,
                         .factor = parts_.draws == nullptr ? 1 : parts_.draws->compute(instance)};
  if (!parts_.compute.begin(instance, work, {}, now)) finish(instance, lane, now);
}

void StretchRun::record_meeting(std::int32_t group, LaneKind lane, std::int32_t last, SimTime now) {
  for (const int replica : parts_.network.inner[group].replicas) {
    const std::int32_t member = instance_of(replica, last);
    if (progress_of(member).came[static_cast<std::size_t>(lane)] < now)
      parts_.meetings_inside->push_back({.waiting = member, .last = last, .moment = now});
  }
}

void StretchRun::begin_collective(std::int32_t instance, LaneKind lane, std::int32_t number, SimTime now) {
  const Stretch& stretch = parts_.program.stretches.stretches[number];
  const Happening end = lane == LaneKind::kBlocking ? Happening::kStretch : Happening::kBeside;
  const std::int32_t group = inner_group(instance, stretch);
  const std::int32_t own_number = parts_.numbers.stretch + number;
  progress_of(instance).came[static_cast<std::size_t>(lane)] = now;
  if (group >= 0 && !parts_.meetings.come_inside(group, lane)) return;
  if (group >= 0 && parts_.meetings_inside != nullptr) record_meeting(group, lane, instance, now);
  const std::int32_t first = group < 0 ? instance : instance_of(parts_.network.inner[group].replicas.front(), instance);
  const double factor = parts_.draws == nullptr ? 1 : parts_.draws->inside(first, number);
  const SimTime lasts = times_factor(stretch.lasts, factor);
  const double rate = group < 0 ? 0 : inner_rate(parts_.network.inner[group], stretch.bytes_per_second);
  if (group < 0 || parts_.network.inner[group].route == kNoRoute || !(rate > 0) || lasts == SimTime{0}) {
    parts_.events.put(now + lasts, first, end, 0, moment_after(parts_.tape, own_number));
    return;
  }
  const auto groups = static_cast<std::int32_t>(parts_.network.inner.size());
  parts_.flows.start({.id = lane == LaneKind::kBlocking ? first : instances_ + first,
                      .route = parts_.network.inner[group].route,
                      .cap_bytes_per_second = rate,
                      .alone = lasts,
                      .alone_number = own_number,
                      .cap_number = parts_.numbers.inner_rate + number * groups + group},
                     now);
}

std::int32_t StretchRun::inner_group(std::int32_t instance, const Stretch& stretch) const {
  return stretch.inner_class == kNoClass
             ? -1
             : parts_.program.inner.group_of[stretch.inner_class][replica_of(parts_.program, instance)];
}

void StretchRun::end_collective(std::int32_t instance, LaneKind lane, SimTime now) {
  const Stretch& stretch = parts_.program.stretches.stretches[progress_of(instance).at[static_cast<std::size_t>(lane)]];
  const std::int32_t group = inner_group(instance, stretch);
  if (group < 0) {
    finish(instance, lane, now);
    return;
  }
  for (const int replica : parts_.network.inner[group].replicas) finish(instance_of(replica, instance), lane, now);
}

void StretchRun::finish(std::int32_t instance, LaneKind lane, SimTime now) {
  Progress& progress = progress_of(instance);
  std::int32_t& at = progress.at[static_cast<std::size_t>(lane)];
  const Stretch& stretch = parts_.program.stretches.stretches[at];
  if (stretch.completes_bucket) complete_(instance, stretch.until);
  ++at;
  go_on(instance, progress, lane, now);
}

}}  // namespace plumb::simulator
