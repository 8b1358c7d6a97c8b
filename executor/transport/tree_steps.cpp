#include <algorithm>
#include <bit>
#include <cassert>

#include "executor/transport/collective_steps.h"

namespace plumb { inline namespace executor {
namespace {

/// A member's position in a binomial tree. Places are counted from the root. A place's subtree is the places [place,
/// place + width) and its parent is place - width, with `width` the lowest set bit of the place. The root's width is
/// the next power of two that holds all.
struct Tree {
  explicit Tree(const CollectiveSeat& seat)
      : members(seat.members),
        root(seat.root),
        place((seat.member - seat.root + seat.members) % seat.members),
        width(place == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(members)))
                         : 1 << std::countr_zero(static_cast<unsigned>(place))) {}

  int member_at(int any_place) const { return (any_place + root) % members; }
  int parent() const { return member_at(place - width); }

  /// Returns the number of places of the subtree with this first place and width.
  int subtree_size(int first, int of_width) const { return std::min(of_width, members - first); }

  int members, root, place, width;
};

/// Blocks of a run of places. A run that goes round the end of the buffer is in two pieces.
struct BlockRun {
  int first = 0;
  int count = 0;
};
std::vector<BlockRun> blocks_of(const Tree& tree, int first_place, int places) {
  const int first = tree.member_at(first_place);
  const int until_end = std::min(places, tree.members - first);
  std::vector<BlockRun> runs = {{first, until_end}};
  if (places > until_end) runs.push_back({0, places - until_end});
  return runs;
}

void send(std::vector<CollectiveStep>& steps, int member, const BlockRun& blocks) {
  steps.push_back({.send_to = member, .send_first = blocks.first, .send_count = blocks.count});
}

void receive(std::vector<CollectiveStep>& steps, int member, const BlockRun& blocks, bool add) {
  steps.push_back({.receive_from = member, .receive_first = blocks.first, .receive_count = blocks.count, .add = add});
}

void broadcast(std::vector<CollectiveStep>& steps, const Tree& tree) {
  const BlockRun all{0, tree.members};
  if (tree.place > 0) receive(steps, tree.parent(), all, false);
  for (int width = tree.width / 2; width > 0; width /= 2)
    if (tree.place + width < tree.members) send(steps, tree.member_at(tree.place + width), all);
}

void reduce(std::vector<CollectiveStep>& steps, const Tree& tree) {
  const BlockRun all{0, tree.members};
  for (int width = 1; width < tree.width; width *= 2)
    if (tree.place + width < tree.members) receive(steps, tree.member_at(tree.place + width), all, true);
  if (tree.place > 0) send(steps, tree.parent(), all);
}

void scatter(std::vector<CollectiveStep>& steps, const Tree& tree) {
  if (tree.place > 0)
    for (const BlockRun& run : blocks_of(tree, tree.place, tree.subtree_size(tree.place, tree.width)))
      receive(steps, tree.parent(), run, false);
  for (int width = tree.width / 2; width > 0; width /= 2) {
    const int child = tree.place + width;
    if (child >= tree.members) continue;
    for (const BlockRun& run : blocks_of(tree, child, tree.subtree_size(child, width)))
      send(steps, tree.member_at(child), run);
  }
}

void gather(std::vector<CollectiveStep>& steps, const Tree& tree) {
  for (int width = 1; width < tree.width; width *= 2) {
    const int child = tree.place + width;
    if (child >= tree.members) continue;
    for (const BlockRun& run : blocks_of(tree, child, tree.subtree_size(child, width)))
      receive(steps, tree.member_at(child), run, false);
  }
  if (tree.place > 0)
    for (const BlockRun& run : blocks_of(tree, tree.place, tree.subtree_size(tree.place, tree.width)))
      send(steps, tree.parent(), run);
}

}  // namespace

std::vector<CollectiveStep> tree_steps(CollectiveKind op, const CollectiveSeat& seat) {
  const Tree tree(seat);
  const Tree from_zero({.members = seat.members, .member = seat.member});
  std::vector<CollectiveStep> steps;
  switch (op) {
    case CollectiveKind::kBroadcast:
      broadcast(steps, tree);
      break;
    case CollectiveKind::kScatter:
      scatter(steps, tree);
      break;
    case CollectiveKind::kGather:
      gather(steps, tree);
      break;
    case CollectiveKind::kReduce:
      reduce(steps, tree);
      break;
    case CollectiveKind::kAllGather:
      gather(steps, from_zero);
      broadcast(steps, from_zero);
      break;
    case CollectiveKind::kReduceScatter:
      reduce(steps, from_zero);
      scatter(steps, from_zero);
      break;
    case CollectiveKind::kAllReduce:
      reduce(steps, from_zero);
      broadcast(steps, from_zero);
      break;
    default:
      assert(false && "all-to-alls, shifts and messages have no steps");
  }
  return steps;
}

}}  // namespace plumb::executor
