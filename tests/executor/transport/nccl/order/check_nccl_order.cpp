#include "tests/executor/transport/nccl/order/check_nccl_order.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "tests/executor/transport/nccl/order/matched_calls.h"

namespace plumb::test {
namespace {

constexpr std::size_t kMostFindings = 8;

/// Plays an order in which all ranks agree, to its end or to where nothing moves.
class OrderPlayer {
 public:
  OrderPlayer(const NcclOrder& order, const MatchedCalls& matched, const NcclLimits& limits)
      : order_(order),
        matched_(matched),
        channels_(limits.channels == 0 ? std::numeric_limits<int>::max() : limits.channels),
        depth_(limits.queue_depth == 0 ? std::numeric_limits<std::int32_t>::max() : limits.queue_depth),
        started_(matched.participants.size(), 0),
        ranks_(order.ranks.size()) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) prepare(rank);
  }

  bool ends() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) wake(rank);
    while (!awake_.empty()) {
      const std::size_t rank = awake_.back();
      awake_.pop_back();
      ranks_[rank].is_awake = false;
      advance(rank);
    }
    return std::ranges::all_of(ranks_, [](const RankState& rank) { return rank.done == rank.progress.size(); });
  }

  /// Returns at which call each rank stands and for which rank, from rank to rank until one comes up again.
  std::vector<std::string> explain() const {
    std::vector<std::string> lines;
    std::set<std::size_t> seen;
    std::size_t rank = 0;
    while (ranks_[rank].done == ranks_[rank].progress.size()) ++rank;
    std::int32_t call = first_open(rank);
    while (true) {
      const auto [standing, why] = blocker(rank, call);
      const std::string here = text_of_call(order_, static_cast<std::int32_t>(rank), standing);
      if (progress(rank, standing) != Progress::kStarted) {
        lines.push_back(fmt::format("{} cannot start: {}", here, why));
        return lines;
      }
      const Participant absent = absent_of(rank, standing);
      lines.push_back(fmt::format("{} waits for rank {}", here, absent.rank));
      if (!seen.insert(rank).second) return lines;
      rank = static_cast<std::size_t>(absent.rank);
      call = absent.call;
    }
  }

 private:
  enum class Progress : std::uint8_t { kIdle, kStarted, kEnded };

  struct RankState {
    std::vector<Progress> progress;               // [call]
    std::vector<std::int32_t> before;             // [call] the one before it on its stream; -1 for the first
    std::vector<std::int32_t> kernel;             // [call] the first call of its kernel
    std::vector<std::int32_t> unmatched;          // [first call of a kernel] calls whose peers have not come
    std::vector<std::int32_t> compute, launches;  // calls, and the first calls of units, in order
    std::size_t next_compute = 0, next_launch = 0;
    std::size_t done = 0;         // calls that have ended
    std::int32_t first_open = 0;  // all before have ended
    int resident = 0;             // kernels that wait
    bool is_awake = false;
  };

  const std::vector<OrderedCall>& calls(std::size_t rank) const { return order_.ranks[rank].calls; }
  Progress progress(std::size_t rank, std::int32_t call) const {
    return ranks_[rank].progress[static_cast<std::size_t>(call)];
  }

  /// Returns the call behind the last one of the unit that begins here.
  std::int32_t unit_end(std::size_t rank, std::int32_t first) const {
    const std::vector<OrderedCall>& all = calls(rank);
    const std::int32_t group = all[static_cast<std::size_t>(first)].group;
    auto end = static_cast<std::size_t>(first) + 1;
    while (group != OrderedCall::kNone && end < all.size() && all[end].group == group) ++end;
    return static_cast<std::int32_t>(end);
  }

  void prepare(std::size_t rank) {
    RankState& state = ranks_[rank];
    const std::vector<OrderedCall>& all = calls(rank);
    state.progress.assign(all.size(), Progress::kIdle);
    state.unmatched.assign(all.size(), 0);
    state.before.assign(all.size(), -1);
    state.kernel.assign(all.size(), -1);
    std::vector<std::int32_t> last;  // [stream]
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto stream = static_cast<std::size_t>(all[i].stream);
      if (last.size() <= stream) last.resize(stream + 1, -1);
      state.kernel[i] = static_cast<std::int32_t>(i);
      if (!all[i].kind) {
        state.compute.push_back(static_cast<std::int32_t>(i));
      } else if (all[i].group == OrderedCall::kNone || i == 0 || all[i - 1].group != all[i].group) {
        state.launches.push_back(static_cast<std::int32_t>(i));
      } else {
        for (auto other = static_cast<std::size_t>(state.launches.back()); other < i; ++other)
          if (all[other].communicator == all[i].communicator && all[other].stream == all[i].stream) {
            state.kernel[i] = state.kernel[other];
            break;
          }
      }
      const bool begins = state.kernel[i] == static_cast<std::int32_t>(i);
      if (begins) state.before[i] = last[stream];
      if (begins) last[stream] = static_cast<std::int32_t>(i);
      if (all[i].kind) ++state.unmatched[static_cast<std::size_t>(state.kernel[i])];
    }
  }

  /// Returns the call on its stream or among its waits that keeps the call from starting; -1: none.
  std::int32_t missing(std::size_t rank, std::int32_t call) const {
    const RankState& state = ranks_[rank];
    const OrderedCall& of = calls(rank)[static_cast<std::size_t>(call)];
    const std::int32_t before = state.before[static_cast<std::size_t>(call)];
    if (before >= 0 && progress(rank, before) != Progress::kEnded) return before;
    for (std::int32_t i = 0; i < of.waits; ++i) {
      const std::int32_t wait = order_.ranks[rank].waits[static_cast<std::size_t>(of.first_wait + i)];
      if (progress(rank, wait) != Progress::kEnded) return wait;
    }
    return -1;
  }

  int kernels_of(std::size_t rank, std::int32_t first, std::int32_t end) const {
    int kernels = 0;
    for (std::int32_t call = first; call < end; ++call)
      kernels += ranks_[rank].kernel[static_cast<std::size_t>(call)] == call ? 1 : 0;
    return kernels;
  }

  bool host_reaches(std::size_t rank, std::int32_t call) const { return call - ranks_[rank].first_open < depth_; }

  void advance(std::size_t rank) {
    RankState& state = ranks_[rank];
    for (bool moves = true; moves;) {
      moves = false;
      while (state.next_compute < state.compute.size()) {
        const std::int32_t call = state.compute[state.next_compute];
        if (!host_reaches(rank, call) || missing(rank, call) >= 0) break;
        ++state.next_compute;
        end_call(rank, call);
        moves = true;
      }
      while (state.next_launch < state.launches.size() && launch(rank, state.launches[state.next_launch])) {
        ++state.next_launch;
        moves = true;
      }
    }
  }

  bool launch(std::size_t rank, std::int32_t first) {
    RankState& state = ranks_[rank];
    const std::int32_t end = unit_end(rank, first);
    if (!host_reaches(rank, first) || state.resident + kernels_of(rank, first, end) > channels_) return false;
    for (std::int32_t call = first; call < end; ++call)
      if (missing(rank, call) >= 0) return false;
    state.resident += kernels_of(rank, first, end);
    for (std::int32_t call = first; call < end; ++call)
      state.progress[static_cast<std::size_t>(call)] = Progress::kStarted;
    for (std::int32_t call = first; call < end; ++call) {
      const auto match = static_cast<std::size_t>(matched_.match[rank][static_cast<std::size_t>(call)]);
      const std::vector<Participant>& all = matched_.participants[match];
      if (++started_[match] < all.size()) continue;
      for (const Participant& one : all) arrive(static_cast<std::size_t>(one.rank), one.call);
    }
    return true;
  }

  /// Notes that all who take part in the call have started.
  void arrive(std::size_t rank, std::int32_t call) {
    RankState& state = ranks_[rank];
    const std::int32_t kernel = state.kernel[static_cast<std::size_t>(call)];
    if (--state.unmatched[static_cast<std::size_t>(kernel)] > 0) return;
    --state.resident;
    const std::int32_t end = unit_end(rank, kernel);
    for (std::int32_t other = kernel; other < end; ++other)
      if (state.kernel[static_cast<std::size_t>(other)] == kernel) end_call(rank, other);
    wake(rank);
  }

  void end_call(std::size_t rank, std::int32_t call) {
    RankState& state = ranks_[rank];
    state.progress[static_cast<std::size_t>(call)] = Progress::kEnded;
    ++state.done;
    while (static_cast<std::size_t>(state.first_open) < state.progress.size() &&
           progress(rank, state.first_open) == Progress::kEnded)
      ++state.first_open;
  }

  void wake(std::size_t rank) {
    if (std::exchange(ranks_[rank].is_awake, true)) return;
    awake_.push_back(rank);
  }

  std::int32_t first_open(std::size_t rank) const { return ranks_[rank].first_open; }

  struct Blocker {
    std::int32_t call = 0;
    std::string why;
  };

  /// The call of this rank on account of which `call` stands: one that has started and whose peers have not come, or
  /// one that cannot start for a reason of its own.
  Blocker blocker(std::size_t rank, std::int32_t call) const {
    const RankState& state = ranks_[rank];
    for (std::size_t steps = 0; steps <= state.progress.size(); ++steps) {
      if (progress(rank, call) == Progress::kStarted) return {call, ""};
      if (!host_reaches(rank, call)) {
        call = state.first_open;
        continue;
      }
      if (const std::int32_t other = missing(rank, call); other >= 0) {
        call = other;
        continue;
      }
      if (!calls(rank)[static_cast<std::size_t>(call)].kind) break;
      const std::int32_t head = state.launches[state.next_launch];
      if (call < head || call >= unit_end(rank, head)) {  // the host's order
        call = head;
        continue;
      }
      std::int32_t part = head;
      while (part < unit_end(rank, head) && missing(rank, part) < 0) ++part;
      if (part < unit_end(rank, head)) {
        call = missing(rank, part);
        continue;
      }
      const auto holder = std::ranges::find(state.progress, Progress::kStarted);
      if (holder == state.progress.end())
        return {call, fmt::format("its group needs {} channels and there are {}",
                                  kernels_of(rank, head, unit_end(rank, head)), channels_)};
      return {static_cast<std::int32_t>(holder - state.progress.begin()), ""};
    }
    return {call, "it waits for a call that stands behind it"};
  }

  Participant absent_of(std::size_t rank, std::int32_t call) const {
    const std::int32_t kernel = ranks_[rank].kernel[static_cast<std::size_t>(call)];
    for (std::int32_t other = kernel; other < unit_end(rank, kernel); ++other) {
      if (ranks_[rank].kernel[static_cast<std::size_t>(other)] != kernel) continue;
      const auto match = static_cast<std::size_t>(matched_.match[rank][static_cast<std::size_t>(other)]);
      for (const Participant& one : matched_.participants[match])
        if (progress(static_cast<std::size_t>(one.rank), one.call) == Progress::kIdle) return one;
    }
    return {static_cast<std::int32_t>(rank), call};
  }

  const NcclOrder& order_;
  const MatchedCalls& matched_;
  const int channels_;
  const std::int32_t depth_;
  std::vector<std::size_t> started_;  // [match]
  std::vector<RankState> ranks_;
  std::vector<std::size_t> awake_;
};

int most_streams(const NcclOrder& order) {
  std::size_t most = 0;
  for (const RankOrder& rank : order.ranks) {
    std::vector<std::int32_t> streams;
    for (const OrderedCall& call : rank.calls)
      if (call.kind) streams.push_back(call.stream);
    std::ranges::sort(streams);
    most = std::max(most, static_cast<std::size_t>(std::unique(streams.begin(), streams.end()) - streams.begin()));
  }
  return static_cast<int>(most);
}

}  // namespace

std::vector<std::string> check_nccl_order(const NcclOrder& order, const NcclLimits& limits) {
  MatchedCalls matched = match_calls(order, kMostFindings);
  if (!matched.findings.empty()) return std::move(matched.findings);
  NcclLimits played = limits;
  if (!limits.implicit_order && limits.channels > 0) {
    if (const int streams = most_streams(order); limits.channels < streams)
      return {
          fmt::format("without one launch order {} channels can all be taken by calls that wait for what they keep "
                      "out: a rank has calls on {} streams; set NCCL_LAUNCH_ORDER_IMPLICIT=1",
                      limits.channels, streams)};
    played.channels = 0;  // never all taken
  }
  OrderPlayer player(order, matched, played);
  if (player.ends()) return {};
  std::vector<std::string> found = {limits.channels > 0 ? fmt::format("it deadlocks with {} channels:", limits.channels)
                                                        : "it deadlocks:"};
  std::vector<std::string> lines = player.explain();
  found.insert(found.end(), lines.begin(), lines.end());
  return found;
}

int channels_needed(const NcclOrder& order) {
  const MatchedCalls matched = match_calls(order, 1);
  const auto ends = [&](int channels) { return OrderPlayer(order, matched, {.channels = channels}).ends(); };
  if (!matched.findings.empty() || !ends(0)) return 0;
  int enough = std::max(1, most_streams(order)), few = 0;
  while (enough - few > 1) {
    const int middle = few + (enough - few) / 2;
    (ends(middle) ? enough : few) = middle;
  }
  return enough;
}

}  // namespace plumb::test
