#include "executor/measure/measure_collectives.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <thread>

#include <fmt/format.h>

#include "executor/transport/communicator.h"
#include "executor/transport/in_process_transport.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

constexpr int kLeastCollectiveRepeats = 5;
constexpr int kMostCollectiveRepeats = 200;

Collective collective_of(CollectiveKind op, std::span<float> values, std::span<const float> outgoing) {
  if (op == CollectiveKind::kAllToAll) return all_to_all(values, outgoing);
  if (op == CollectiveKind::kShift) return shift(values, outgoing);
  return {.op = op, .values = values};
}

/// [member][repeat] Moments at which a member started and was done.
struct Moments {
  std::vector<std::vector<SimTime>> started, done;
};

Moments time_repeats(const CollectiveSample& of, int repeats) {
  const Clock clock = monotonic_clock();
  const auto members = static_cast<std::size_t>(of.members);
  InProcessTransport transport({.ranks = of.members}, clock);
  std::vector<int> ranks(members);
  std::iota(ranks.begin(), ranks.end(), 0);
  Moments moments{std::vector<std::vector<SimTime>>(members), std::vector<std::vector<SimTime>>(members)};
  const auto work = [&](int rank) {
    Communicator group(transport, {"measured group", ranks}, rank, clock, of.algorithm);
    const std::int64_t elements = of.bytes / 4;
    const bool needs_equal_blocks = of.op == CollectiveKind::kAllToAll;
    std::vector<float> values(
        static_cast<std::size_t>(needs_equal_blocks ? elements - elements % of.members : elements));
    const std::vector<float> outgoing(values.size());
    for (int i = 0; i < repeats; ++i) {
      group.run(all_reduce({}));  // the members meet
      moments.started[static_cast<std::size_t>(rank)].push_back(clock());
      group.run(collective_of(of.op, values, outgoing));
      moments.done[static_cast<std::size_t>(rank)].push_back(clock());
    }
  };
  std::vector<std::thread> threads;
  for (const int rank : ranks) threads.emplace_back(work, rank);
  for (std::thread& thread : threads) thread.join();
  return moments;
}

std::vector<Seconds> times_of(const CollectiveSample& of, int repeats) {
  const Moments moments = time_repeats(of, repeats);
  std::vector<Seconds> times;
  for (std::size_t i = 0; i < static_cast<std::size_t>(repeats); ++i) {
    SimTime started{0}, done{0};
    for (std::size_t member = 0; member < moments.done.size(); ++member) {
      started = std::max(started, moments.started[member][i]);
      done = std::max(done, moments.done[member][i]);
    }
    times.push_back(to_seconds(done - started));
  }
  std::ranges::sort(times);
  return times;
}

bool has_one_algorithm(CollectiveKind op) {
  return op == CollectiveKind::kAllToAll || op == CollectiveKind::kShift;
}

}  // namespace

std::vector<CollectiveSample> measure_collectives(const CollectiveMeasureOptions& options) {
  if (options.members < 2) throw SpecError(fmt::format("collectives of {} ranks: measure 2 or more", options.members));
  std::vector<CollectiveSample> samples;
  for (int op = 0; op < kCollectiveKindCount; ++op)
    for (const CollectiveAlgorithm algorithm : {CollectiveAlgorithm::kRing, CollectiveAlgorithm::kTree})
      for (const std::int64_t bytes : options.sizes_bytes) {
        if (bytes < 4) throw SpecError(fmt::format("collectives of {} bytes: give 4 or more", bytes));
        const auto kind = static_cast<CollectiveKind>(op);
        if (algorithm == CollectiveAlgorithm::kTree && has_one_algorithm(kind)) continue;
        samples.push_back({.op = kind, .algorithm = algorithm, .members = options.members, .bytes = bytes});
      }
  const Seconds share = options.budget / static_cast<double>(std::max<std::size_t>(samples.size(), 1));
  for (CollectiveSample& sample : samples) {
    const Seconds once = std::max(times_of(sample, 2).front(), Seconds{1e-7});
    sample.repeats =
        static_cast<int>(std::clamp(share / once, double{kLeastCollectiveRepeats}, double{kMostCollectiveRepeats}));
    const std::vector<Seconds> times = times_of(sample, sample.repeats);
    sample.median = times[times.size() / 2];
    sample.fastest = times.front();
  }
  return samples;
}

double algorithm_bytes_per_second(const CollectiveSample& sample) {
  return static_cast<double>(sample.bytes) / sample.median.count();
}

double bus_bytes_per_second(const CollectiveSample& sample) {
  const double n = sample.members;
  switch (sample.op) {
    case CollectiveKind::kAllReduce:
      return algorithm_bytes_per_second(sample) * 2 * (n - 1) / n;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kScatter:
    case CollectiveKind::kGather:
    case CollectiveKind::kAllToAll:
      return algorithm_bytes_per_second(sample) * (n - 1) / n;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kShift:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive:
      return algorithm_bytes_per_second(sample);
  }
  return 0;
}

}}  // namespace plumb::executor
