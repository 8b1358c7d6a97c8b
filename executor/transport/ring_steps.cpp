#include <cassert>

#include "executor/transport/collective_steps.h"

namespace plumb { inline namespace executor {
namespace {

int modulo(int value, int members) {
  return (value % members + members) % members;
}

/// Appends n-1 steps round the ring: block `first` goes out first, then the one before it, and so on.
void go_round(std::vector<CollectiveStep>& steps, const CollectiveSeat& seat, int first, bool add) {
  const int n = seat.members;
  for (int k = 0; k < n - 1; ++k)
    steps.push_back({.send_to = modulo(seat.member + 1, n),
                     .send_first = modulo(first - k, n),
                     .send_count = 1,
                     .receive_from = modulo(seat.member - 1, n),
                     .receive_first = modulo(first - k - 1, n),
                     .receive_count = 1,
                     .add = add});
}

/// This member's position in a chain through which blocks are passed one behind the other.
struct Chain {
  int before = -1;  ///< member that blocks come from; -1: this one is the first
  int behind = -1;  ///< member that blocks go to; -1: this one is the last
  int ahead = 0;    ///< members ahead of it
};

/// Returns the chain from the root to the member before it in the ring.
Chain chain_from_root(const CollectiveSeat& seat) {
  const int n = seat.members;
  const int ahead = modulo(seat.member - seat.root, n);
  return {.before = ahead > 0 ? modulo(seat.member - 1, n) : -1,
          .behind = ahead < n - 1 ? modulo(seat.member + 1, n) : -1,
          .ahead = ahead};
}

/// Returns the reverse chain, in which the root is last.
Chain chain_to_root(const CollectiveSeat& seat) {
  const Chain away = chain_from_root(seat);
  return {.before = away.behind, .behind = away.before, .ahead = seat.members - 1 - away.ahead};
}

/// Appends one step of a chain, unless it has neither half.
void add_step(std::vector<CollectiveStep>& steps, const Chain& chain, int sent_block, int received_block, bool add) {
  const bool sends = chain.behind >= 0 && sent_block >= 0, receives = chain.before >= 0 && received_block >= 0;
  if (!sends && !receives) return;
  CollectiveStep step{.add = add};
  if (sends) step.send_to = chain.behind, step.send_first = sent_block, step.send_count = 1;
  if (receives) step.receive_from = chain.before, step.receive_first = received_block, step.receive_count = 1;
  steps.push_back(step);
}

/// Passes every block through the whole chain: the block that came in last goes out while the next comes in.
void pump(std::vector<CollectiveStep>& steps, const Chain& chain, int blocks, bool add) {
  for (int i = 0; i <= blocks; ++i) add_step(steps, chain, i - 1, i < blocks ? i : -1, add);
}

/// Scatters along the chain: the farthest member's block goes first, and each member keeps the last block that reaches
/// it.
void scatter_along(std::vector<CollectiveStep>& steps, const Chain& chain, const CollectiveSeat& seat) {
  const int n = seat.members, incoming = n - chain.ahead;
  const auto block = [&](int i) { return modulo(seat.root - 1 - i, n); };
  for (int i = 0; i < incoming; ++i) add_step(steps, chain, i > 0 ? block(i - 1) : -1, block(i), false);
}

/// Gathers along the chain: a member's own block goes first, then the blocks that come from ahead.
void gather_along(std::vector<CollectiveStep>& steps, const Chain& chain, const CollectiveSeat& seat) {
  const auto block = [&](int i) { return modulo(seat.member + i, seat.members); };
  for (int i = 0; i <= chain.ahead; ++i) add_step(steps, chain, block(i), i < chain.ahead ? block(i + 1) : -1, false);
}

}  // namespace

std::string_view algorithm_name(CollectiveAlgorithm algorithm) {
  return algorithm == CollectiveAlgorithm::kRing ? "ring" : "tree";
}

std::vector<CollectiveStep> ring_steps(CollectiveKind op, const CollectiveSeat& seat) {
  const int n = seat.members;
  std::vector<CollectiveStep> steps;
  switch (op) {
    case CollectiveKind::kAllGather:
      go_round(steps, seat, seat.member, false);
      break;
    case CollectiveKind::kReduceScatter:
      go_round(steps, seat, seat.member - 1, true);
      break;
    case CollectiveKind::kAllReduce:
      go_round(steps, seat, seat.member - 1, true);
      go_round(steps, seat, seat.member, false);
      break;
    case CollectiveKind::kBroadcast:
      pump(steps, chain_from_root(seat), n, false);
      break;
    case CollectiveKind::kReduce:
      pump(steps, chain_to_root(seat), n, true);
      break;
    case CollectiveKind::kScatter:
      scatter_along(steps, chain_from_root(seat), seat);
      break;
    case CollectiveKind::kGather:
      gather_along(steps, chain_to_root(seat), seat);
      break;
    default:
      assert(false && "all-to-alls, shifts and messages have no steps");
  }
  return steps;
}

std::vector<CollectiveStep> exchange_steps(const CollectiveSeat& seat) {
  const int n = seat.members;
  std::vector<CollectiveStep> steps;
  for (int k = 1; k < n; ++k) {
    const int to = modulo(seat.member + k, n), from = modulo(seat.member - k, n);
    steps.push_back({.send_to = to,
                     .send_first = to,
                     .send_count = 1,
                     .receive_from = from,
                     .receive_first = from,
                     .receive_count = 1});
  }
  return steps;
}

}}  // namespace plumb::executor
