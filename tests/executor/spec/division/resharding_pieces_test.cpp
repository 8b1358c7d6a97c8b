#include "executor/spec/division/resharding_pieces.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace plumb::test {

TEST_CASE("two tensor ranks that hold all rows send each replica its half, in shares") {
  // Replica 0 holds the first four of 8 elements. Each replica has one receiver, for which both senders share the work.
  CHECK(resharding_pieces({.tensor = 2}, {.parts = 2}, Resharding::kAllGather, 8) ==
        std::vector<ReshardingPiece>{{0, 0, 0, 0, 0, 2}, {0, 1, 0, 0, 2, 2}, {0, 0, 1, 0, 4, 2}, {0, 1, 1, 0, 6, 2}});
}

TEST_CASE("two replicas send to two tensor ranks each row twice, once, or to the first") {
  const MeshTensor from{.parts = 2}, to{.tensor = 2};
  CHECK(resharding_pieces(from, to, Resharding::kDirect, 8) ==
        std::vector<ReshardingPiece>{{0, 0, 0, 0, 0, 4}, {1, 0, 0, 0, 4, 4}, {0, 0, 0, 1, 0, 4}, {1, 0, 0, 1, 4, 4}});
  CHECK(resharding_pieces(from, to, Resharding::kAllGather, 8) ==
        std::vector<ReshardingPiece>{{0, 0, 0, 0, 0, 4}, {1, 0, 0, 1, 4, 4}});
  CHECK(resharding_pieces(from, to, Resharding::kBroadcast, 8) ==
        std::vector<ReshardingPiece>{{0, 0, 0, 0, 0, 4}, {1, 0, 0, 0, 4, 4}});
}

TEST_CASE("every element reaches a destination once, from a rank that holds it, between two ranks in one piece") {
  for (const MeshTensor& from : {MeshTensor{1, 1}, {2, 1}, {1, 4}, {2, 3}, {4, 2, true}, {1, 3, true}})
    for (const MeshTensor& to : {MeshTensor{1, 1}, {3, 1}, {1, 4}, {4, 2}, {2, 2, true}})
      for (const Resharding kind : {Resharding::kDirect, Resharding::kAllGather, Resharding::kBroadcast}) {
        const std::int64_t elements = 48;
        std::vector<int> arrived(static_cast<std::size_t>(elements), 0);
        std::set<std::vector<int>> pairs;
        for (const ReshardingPiece& piece : resharding_pieces(from, to, kind, elements)) {
          const HeldElements source = held_elements(from, piece.from_part, piece.from_tensor, elements);
          const HeldElements target = held_elements(to, piece.to_part, piece.to_tensor, elements);
          CHECK(piece.first >= std::max(source.first, target.first));
          CHECK(piece.first + piece.count <= std::min(source.first + source.count, target.first + target.count));
          CHECK(pairs.insert({piece.from_part, piece.from_tensor, piece.to_part, piece.to_tensor}).second);
          for (std::int64_t i = piece.first; i < piece.first + piece.count; ++i) ++arrived[static_cast<std::size_t>(i)];
        }
        const int copies = kind == Resharding::kDirect && !to.scattered ? to.tensor : 1;
        for (const int count : arrived) CHECK(count == copies);
      }
}

TEST_CASE("shares of what tensor ranks gather cover it") {
  CHECK(gathered_bounds({.tensor = 3}, 8) == std::vector<std::int64_t>{0, 2, 5, 8});
}

}  // namespace plumb::test
