#pragma once
// The steps of a collective on each member: the blocks of the buffer that it sends to another member, and those that it
// receives. Between two members messages are matched in order. The order in which values are added follows from the
// steps alone.

#include <cstdint>
#include <string_view>
#include <vector>

#include "executor/transport/collective.h"

namespace plumb { inline namespace executor {

enum class CollectiveAlgorithm : std::uint8_t { kRing, kTree };

/// Returns the name: "ring" or "tree".
std::string_view algorithm_name(CollectiveAlgorithm algorithm);

/// One step, whose two halves go on at once. A half that is not there has member -1.
struct CollectiveStep {
  int send_to = -1;
  int send_first = 0;  ///< first block
  int send_count = 0;  ///< number of blocks
  int receive_from = -1;
  int receive_first = 0;
  int receive_count = 0;
  bool add = false;  ///< received values are added to those that are there

  friend bool operator==(const CollectiveStep&, const CollectiveStep&) = default;
};

/// A member's number in a group of `members`, and the root.
struct CollectiveSeat {
  int members = 1;
  int member = 0;
  int root = 0;
};

/// Returns the steps by ring, in which members pass blocks to the next one (Patarasuk and Yuan 2009): n-1 steps of 1/n
/// of the buffer for all_gather and reduce_scatter, and twice that for all_reduce. The rooted collectives are chains
/// that start or end at the root and pass block behind block. Block c is added from member c+1 round to member c; in
/// reduce, from the last of the chain to the root. Not for all_to_all and shift, which have one algorithm
/// (exchange_steps).
std::vector<CollectiveStep> ring_steps(CollectiveKind op, const CollectiveSeat& seat);

/// Returns the steps by binomial trees (Thakur, Rabenseifner and Gropp 2005): ceil(log2 n) steps of the whole buffer
/// from or to the root, or of a subtree's blocks for scatter and gather. all_gather is gather and broadcast,
/// reduce_scatter is reduce and scatter, and all_reduce is reduce and broadcast, with member 0 as the root. Member q
/// adds the subtrees of q+1, q+2, q+4, ... in this order. Not for all_to_all and shift.
std::vector<CollectiveStep> tree_steps(CollectiveKind op, const CollectiveSeat& seat);

/// Returns the steps of all_to_all, pairwise: in step k, for k = 1 .. n-1, block i+k goes to member i+k and block i-k
/// comes from member i-k. Sent blocks are those of the outgoing buffer.
std::vector<CollectiveStep> exchange_steps(const CollectiveSeat& seat);

}}  // namespace plumb::executor
