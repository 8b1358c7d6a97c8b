#include "simulator/network/rank_compute.h"

#include <algorithm>
#include <cmath>

namespace plumb {

RankCompute::RankCompute(const EventProgram& program, const NetworkSpec& network, int ranks, EventQueue& events)
    : program_(program),
      network_(network),
      ranks_of_replica_(static_cast<std::size_t>(ranks)),
      events_(events),
      ranks_(ranks_of_replica_ * network.replicas) {}

std::size_t RankCompute::rank_of(std::int32_t instance) const {
  return static_cast<std::size_t>(replica_of(program_, instance)) * ranks_of_replica_ +
         program_.rank[action_of(program_, instance)];
}

/// How long work takes on the rank of `instance`.
SimTime RankCompute::at_speed(std::int32_t instance, SimTime work) const {
  if (network_.speeds.empty()) return work;
  const double speed = network_.speeds[rank_of(instance)];
  return speed == 1.0 ? work : SimTime{std::llround(static_cast<double>(work.count()) / speed)};
}

double RankCompute::speed_now(const Rank& rank) const {
  return rank.collectives > 0 ? 1 / (1 + network_.collective_slowdown) : 1.0;
}

void RankCompute::schedule(Rank& rank, SimTime now) {
  ++rank.version;
  const auto time_for = [&](double work_ps) {
    return SimTime{std::max<std::int64_t>(0, std::llround(work_ps / speed_now(rank)))};
  };
  for (const std::int32_t reduction : rank.buckets) {
    const SimTime offset = at_speed(reduction, program_.inside[action_of(program_, reduction)]);
    const double behind_ps = rank.work_ps - static_cast<double>(offset.count());
    events_.put(now + time_for(rank.work_left_ps - behind_ps), reduction, Happening::kBucket, rank.version);
  }
  events_.put(now + time_for(rank.work_left_ps), rank.running, Happening::kEnd, rank.version);
}

bool RankCompute::begin(std::int32_t instance, SimTime work, const std::vector<std::int32_t>& buckets, SimTime now) {
  const SimTime lasts = at_speed(instance, work);
  if (network_.collective_slowdown == 0) {
    for (const std::int32_t reduction : buckets) {
      const SimTime offset = at_speed(reduction, program_.inside[action_of(program_, reduction)]);
      events_.put(now + offset, reduction, Happening::kBucket);
    }
    if (lasts == SimTime{0}) return false;
    events_.put(now + lasts, instance, Happening::kEnd);
    return true;
  }
  Rank& rank = ranks_[rank_of(instance)];
  rank.running = instance;
  rank.work_ps = rank.work_left_ps = static_cast<double>(lasts.count());
  rank.since = now;
  rank.buckets = buckets;
  schedule(rank, now);
  return true;
}

void RankCompute::end(std::int32_t instance) {
  if (network_.collective_slowdown > 0) ranks_[rank_of(instance)].running = -1;
}

void RankCompute::complete(std::int32_t reduction) {
  if (network_.collective_slowdown > 0) std::erase(ranks_[rank_of(reduction)].buckets, reduction);
}

void RankCompute::change_collectives(std::int32_t instance, int change, SimTime now) {
  if (network_.collective_slowdown == 0) return;
  Rank& rank = ranks_[rank_of(instance)];
  const double before = speed_now(rank);
  rank.collectives += change;
  if (rank.running < 0 || speed_now(rank) == before) return;
  rank.work_left_ps -= before * static_cast<double>((now - rank.since).count());
  rank.since = now;
  schedule(rank, now);
}

bool RankCompute::is_outdated(const Event& event) const {
  if (network_.collective_slowdown == 0) return false;
  const bool bucket = event.happening == Happening::kBucket;
  if (!bucket && event.happening != Happening::kEnd) return false;
  if (!bucket && program_.kind[action_of(program_, event.instance)] != EventKind::kCompute) return false;
  const Rank& rank = ranks_[rank_of(event.instance)];
  if (rank.version != event.version) return true;
  return !bucket && rank.running != event.instance;
}

}  // namespace plumb
