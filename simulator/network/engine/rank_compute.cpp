#include "simulator/network/engine/rank_compute.h"

#include <algorithm>
#include <cmath>

#include "simulator/network/engine/event_numbers.h"
#include "simulator/noise/noise_draws.h"

namespace plumb { inline namespace simulator {
namespace {

using Tape = DerivativeTape;

}  // namespace

RankCompute::RankCompute(const EventProgram& program, const NetworkSpec& network, int ranks, EventQueue& events,
                         DerivativeTape* tape)
    : program_(program),
      network_(network),
      ranks_of_replica_(static_cast<std::size_t>(ranks)),
      events_(events),
      tape_(tape),
      first_offset_(numbering(program, network).inside),
      ranks_(ranks_of_replica_ * network.replicas) {}

std::size_t RankCompute::rank_of(std::int32_t instance) const {
  return static_cast<std::size_t>(replica_of(program_, instance)) * ranks_of_replica_ +
         program_.rank[action_of(program_, instance)];
}

double RankCompute::speed_of(std::int32_t instance) const {
  return network_.speeds.empty() ? 1.0 : network_.speeds[rank_of(instance)];
}

/// Returns how long work takes on the rank of `instance`.
SimTime RankCompute::at_speed(std::int32_t instance, SimTime work) const {
  const double speed = speed_of(instance);
  return speed == 1.0 ? work : at_most_latest(std::round(static_cast<double>(work.count()) / speed));
}

/// Returns the offset from the start of its host, in which everything takes `factor` times as long.
SimTime RankCompute::offset_of(std::int32_t reduction, double factor) const {
  return at_speed(reduction, times_factor(program_.inside[action_of(program_, reduction)], factor));
}

std::int32_t RankCompute::number_of_offset(std::int32_t reduction) const {
  return first_offset_ + action_of(program_, reduction);
}

double RankCompute::speed_now(const Rank& rank) const {
  return rank.collectives > 0 ? 1 / (1 + network_.collective_slowdown) : 1.0;
}

void RankCompute::schedule(Rank& rank, SimTime now) {
  ++rank.version;
  const auto time_for = [&](double work_ps) {
    return at_most_latest(std::max(0.0, std::round(work_ps / speed_now(rank))));
  };
  const double part = 1 / speed_now(rank);
  const double by_work = part / speed_of(rank.running);
  for (const std::int32_t reduction : rank.buckets) {
    const double behind_ps = rank.work_ps - static_cast<double>(offset_of(reduction, rank.factor).count());
    const Tape::Node node =
        tape_ == nullptr
            ? Tape::kConstant
            : tape_->add({Tape::of(rank.since_node, 1), Tape::of(rank.work_node, part), Tape::by(rank.number, -by_work),
                          Tape::by(number_of_offset(reduction), by_work)});
    events_.put(now + time_for(rank.work_left_ps - behind_ps), reduction, Happening::kBucket, rank.version, node);
  }
  const Tape::Node node =
      tape_ == nullptr ? Tape::kConstant : tape_->add({Tape::of(rank.since_node, 1), Tape::of(rank.work_node, part)});
  events_.put(now + time_for(rank.work_left_ps), rank.running, Happening::kEnd, rank.version, node);
}

bool RankCompute::begin(std::int32_t instance, const ComputeWork& work, const std::vector<std::int32_t>& buckets,
                        SimTime now) {
  const SimTime lasts = at_speed(instance, times_factor(work.work, work.factor));
  const double by_number = 1 / speed_of(instance);
  if (network_.collective_slowdown == 0) {
    const auto after = [&](std::int32_t number) {
      return tape_ == nullptr ? Tape::kConstant : tape_->add({Tape::of(tape_->now, 1), Tape::by(number, by_number)});
    };
    for (const std::int32_t reduction : buckets)
      events_.put(now + offset_of(reduction, work.factor), reduction, Happening::kBucket, 0,
                  after(number_of_offset(reduction)));
    if (lasts == SimTime{0}) return false;
    events_.put(now + lasts, instance, Happening::kEnd, 0, after(work.number));
    return true;
  }
  Rank& rank = ranks_[rank_of(instance)];
  rank.running = instance;
  rank.work_ps = rank.work_left_ps = static_cast<double>(lasts.count());
  rank.since = now;
  rank.buckets = buckets;
  rank.number = work.number;
  rank.factor = work.factor;
  if (tape_ != nullptr) {
    rank.since_node = tape_->now;
    rank.work_node = tape_->add({Tape::by(work.number, by_number)});
  }
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
  if (tape_ != nullptr) {
    rank.work_node =
        tape_->add({Tape::of(rank.work_node, 1), Tape::of(tape_->now, -before), Tape::of(rank.since_node, before)});
    rank.since_node = tape_->now;
  }
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

}}  // namespace plumb::simulator
