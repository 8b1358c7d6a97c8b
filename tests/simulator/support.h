#pragma once
// Lowered schedules by name, costs, and random costs from a seed, which the simulator's tests share.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

#include "schedules/dependencies/weight_messages.h"
#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "simulator/path/sensitivity.h"
#include "simulator/simulate.h"
#include "simulator/steady_state.h"

namespace plumb::test {

inline constexpr SimTime kSecond{1'000'000'000'000};

inline Schedule lowered(std::string_view name, int ranks, int microbatches, int chunks = 1) {
  return lower(make_schedule(name, {.ranks = ranks, .microbatches = microbatches, .chunks = chunks}));
}

/// Returns the schedule of that name, lowered for any number of micro-batches.
inline RepeatingSchedule repeating(std::string_view name, const ScheduleParameters& parameters,
                                   const LoweringOptions& options = {}) {
  return {.lowered =
              [name, parameters, options](int microbatches) {
                ScheduleParameters shorter = parameters;
                shorter.microbatches = microbatches;
                return lower(make_schedule(name, shorter), options);
              },
          .microbatches = parameters.microbatches,
          .period = period_of(name, parameters)};
}

/// True for a schedule whose weights travel, which goes with no replicas.
inline bool keeps_no_replicas(const CatalogueEntry& entry) {
  return weights_travel(entry.make({.ranks = 2, .microbatches = 2}));
}

inline int stage_count(const Schedule& schedule) {
  return static_cast<int>(schedule.stages.size());
}

/// Costs of one chunk, in seconds: forward, whole backward, hop latency.
inline CostTable whole_costs(int stages, double forward, double backward, double hop = 0) {
  return chunk_cost_table(
      stages, {.forward = {Seconds{forward}}, .backward = {Seconds{backward}}, .hop_latency = Seconds{hop}});
}

/// Returns unequal costs by operation and stage, with links of unequal latency and bandwidth, some of them free; all
/// are whole picoseconds.
inline CostTable random_costs(const Schedule& schedule, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto picoseconds = [&random](std::uint64_t below) {
    return Seconds{static_cast<double>(random() % below) * 1e-12};
  };
  CostTable costs;
  costs.stages.resize(schedule.stages.size());
  for (StageCosts& stage : costs.stages) {
    for (auto& by_part : stage.segments) by_part = {{Segment{.seconds = picoseconds(1000)}}};
    stage.activation_message_bytes = static_cast<std::int64_t>(random() % 500);
    stage.gradient_message_bytes = static_cast<std::int64_t>(random() % 500);
    stage.memory = {.parameter_bytes = static_cast<std::int64_t>(random() % 100),
                    .forward_bytes = static_cast<std::int64_t>(random() % 100)};
  }
  const int ranks = static_cast<int>(schedule.ranks.size());
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (random() % 4 == 0) continue;
      costs.links[{from, to}] = {.latency = picoseconds(300),
                                 .bytes_per_second = 1e12 / static_cast<double>(1 + random() % 3)};
    }
  }
  return costs;
}

/// Adds a random exchange that blocks it to each F, B, I and W, in whole picoseconds.
inline CostTable with_exchanges(CostTable costs, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (StageCosts& stage : costs.stages)
    for (const Op op : {Op::kForward, Op::kBackward, Op::kInputGrad, Op::kWeightGrad})
      stage.segments[static_cast<std::size_t>(op)][0].push_back(
          {.kind = Segment::Kind::kCollective,
           .seconds = Seconds{static_cast<double>(random() % 1000) * 1e-12},
           .group = Group::kExpert});
  return costs;
}

/// Returns random costs with offsets for that many buckets of each stage, in whole picoseconds, inside any of its
/// backwards.
inline CostTable random_costs(const Schedule& schedule, std::uint64_t seed, int buckets) {
  CostTable costs = random_costs(schedule, seed);
  std::mt19937_64 random(seed);
  for (StageCosts& stage : costs.stages) {
    const auto seconds = [&stage](Op op) { return stage.segments[static_cast<std::size_t>(op)][0][0].seconds; };
    const Seconds shortest = std::min(seconds(Op::kBackward), seconds(Op::kWeightGrad));
    for (int k = 0; k < buckets; ++k)
      stage.bucket_offsets.push_back(
          Seconds{1e-12 * static_cast<double>(random() % (1 + to_sim_time(shortest).count()))});
    std::ranges::sort(stage.bucket_offsets);
  }
  return costs;
}

/// Returns the sum of all sensitivities, in seconds, which is the makespan.
inline double sum_of(const Sensitivity& s) {
  const Seconds computing = std::accumulate(s.compute_by_stage.begin(), s.compute_by_stage.end(), Seconds{0});
  return (computing + s.group_collectives + s.bandwidth + s.latency + s.unshard + s.reduction + s.moves + s.capacity)
      .count();
}

/// Returns every schedule of the catalogue that accepts these numbers, lowered.
inline std::vector<Schedule> all_lowered(int ranks, int microbatches, int chunks, const LoweringOptions& options = {}) {
  std::vector<Schedule> schedules;
  for (const CatalogueEntry& entry : catalogue()) {
    if (chunks > 1 && !entry.takes_chunks) continue;
    try {
      schedules.push_back(lower(entry.make({.ranks = ranks, .microbatches = microbatches, .chunks = chunks}), options));
    } catch (const InputError&) {  // a constraint of that schedule on p, v, m
    }
  }
  return schedules;
}

}  // namespace plumb::test
