#include "executor/measure/measure_transport.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <thread>
#include <utility>

#include "executor/transport/communicator.h"
#include "executor/transport/in_process_transport.h"

namespace plumb { inline namespace executor {
namespace {

constexpr int kLeastMessageRepeats = 5;
constexpr int kMostMessageRepeats = 200;
constexpr std::int64_t kSizesBytes[] = {4, 1 << 10, 16 << 10, 256 << 10, 4 << 20, 16 << 20};

KernelSample sample_of(std::string kernel, std::vector<std::int64_t> shape, std::vector<Seconds> times, int ranks) {
  std::ranges::sort(times);
  return {.kernel = std::move(kernel),
          .shape = std::move(shape),
          .median = times[times.size() / 2],
          .fastest = times.front(),
          .slowest = times.back(),
          .repeats = static_cast<int>(times.size()),
          .busy_ranks = ranks};
}

/// Returns half of each round trip between two ranks that post their receives ahead.
std::vector<Seconds> time_messages(std::int64_t bytes, Seconds budget) {
  const Clock clock = monotonic_clock();
  TensorPool pools[2];
  InProcessTransport transport({.ranks = 2}, clock);
  const std::int64_t elements = bytes / 4;
  const auto channel = [](int source) { return TransportChannel{source, 1 - source, MessageKind::kActivation}; };
  const auto post = [&](int rank, int round) {
    return transport.receive(channel(1 - rank), {0, round}, pools[rank].take(elements));
  };
  bool go_on = true;  // rank 0 decides before it sends, rank 1 reads before it answers
  std::thread other([&] {
    bool is_last = false;
    for (int round = 0; !is_last; ++round) {
      Tensor answer = pools[1].take_zeros(elements);
      transport.wait_received(post(1, round));
      is_last = !go_on;
      transport.send(channel(1), {0, round}, std::move(answer));
    }
  });
  std::vector<Seconds> times;
  const SimTime begin = clock();
  for (int round = 0; go_on; ++round) {
    const TicketPtr answer = post(0, round);
    Tensor payload = pools[0].take_zeros(elements);
    const SimTime start = clock();
    const bool is_last =
        static_cast<int>(times.size()) + 1 >= kMostMessageRepeats ||
        (static_cast<int>(times.size()) + 1 >= kLeastMessageRepeats && to_seconds(start - begin) > budget);
    if (is_last) go_on = false;
    transport.send(channel(0), {0, round}, std::move(payload));
    transport.wait_received(answer);
    times.push_back(to_seconds(clock() - start) / 2);
  }
  other.join();
  return times;
}

/// Returns the times from the last rank's joining to the wake-up of the slowest.
std::vector<Seconds> time_sums(std::int64_t bytes, int ranks, int repeats) {
  const Clock clock = monotonic_clock();
  InProcessTransport transport({.ranks = ranks}, clock);
  std::vector<int> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  std::vector<std::vector<SimTime>> joined(members.size()), woken(members.size());
  const auto work = [&](int rank) {
    Communicator group(transport, {"measured group", members}, rank, clock);
    std::vector<float> values(static_cast<std::size_t>(bytes / 4), 1.0F);
    for (int i = 0; i < repeats; ++i) {
      group.run(all_reduce({}));  // the ranks meet
      joined[static_cast<std::size_t>(rank)].push_back(clock());
      group.run(all_reduce(values));
      woken[static_cast<std::size_t>(rank)].push_back(clock());
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(work, rank);
  for (std::thread& thread : threads) thread.join();
  std::vector<Seconds> times;
  for (std::size_t i = 0; i < static_cast<std::size_t>(repeats); ++i) {
    SimTime last_joined{0}, last_woken{0};
    for (std::size_t rank = 0; rank < joined.size(); ++rank) {
      last_joined = std::max(last_joined, joined[rank][i]);
      last_woken = std::max(last_woken, woken[rank][i]);
    }
    times.push_back(to_seconds(last_woken - last_joined));
  }
  return times;
}

}  // namespace

std::vector<KernelSample> measure_transport(Seconds budget) {
  const Seconds share = budget / (3.0 * static_cast<double>(std::size(kSizesBytes)));
  std::vector<KernelSample> samples;
  for (const std::int64_t bytes : kSizesBytes)
    samples.push_back(sample_of("message", {bytes}, time_messages(bytes, share), 2));
  for (const int ranks : {2, 4})
    for (const std::int64_t bytes : kSizesBytes) {
      const Seconds first = time_sums(bytes, ranks, 1).front();
      const int repeats = std::clamp(static_cast<int>(share / std::max(first, Seconds{1e-6})), kLeastMessageRepeats,
                                     kMostMessageRepeats);
      samples.push_back(sample_of("all_reduce", {bytes, ranks}, time_sums(bytes, ranks, repeats), ranks));
    }
  return samples;
}

}}  // namespace plumb::executor
