#include "executor/spec/division/resharding_pieces.h"

#include <algorithm>

#include "executor/spec/division/equal_blocks.h"

namespace plumb { inline namespace executor {
namespace {

HeldElements block_of(const HeldElements& whole, int blocks, int block) {
  const std::int64_t first = block_begin(whole.count, blocks, block);
  return {whole.first + first, block_begin(whole.count, blocks, block + 1) - first};
}

HeldElements overlap(const HeldElements& a, const HeldElements& b) {
  const std::int64_t first = std::max(a.first, b.first);
  return {first, std::max<std::int64_t>(0, std::min(a.first + a.count, b.first + b.count) - first)};
}

/// Returns the elements that a destination rank is sent.
HeldElements wanted_by(const MeshTensor& to, Resharding kind, int part, int tensor, std::int64_t elements) {
  const HeldElements held = held_elements(to, part, tensor, elements);
  if (to.scattered || kind == Resharding::kDirect) return held;
  if (kind == Resharding::kAllGather) return block_of(held, to.tensor, tensor);
  return tensor == 0 ? held : HeldElements{held.first, 0};
}

}  // namespace

HeldElements held_elements(const MeshTensor& mesh, int part, int tensor, std::int64_t elements) {
  const HeldElements rows = block_of({0, elements}, mesh.parts, part);
  return mesh.scattered ? block_of(rows, mesh.tensor, tensor) : rows;
}

std::vector<std::int64_t> gathered_bounds(const MeshTensor& mesh, std::int64_t held) {
  std::vector<std::int64_t> bounds;
  for (int block = 0; block <= mesh.tensor; ++block) bounds.push_back(block_begin(held, mesh.tensor, block));
  return bounds;
}

std::vector<ReshardingPiece> resharding_pieces(const MeshTensor& from, const MeshTensor& to, Resharding kind,
                                               std::int64_t elements) {
  // Each of a tensor group's receivers takes as many pieces as there are senders for it.
  const int receivers = !to.scattered && kind == Resharding::kBroadcast ? 1 : to.tensor;
  const int senders = from.scattered ? from.tensor : std::max(1, from.tensor / receivers);
  std::vector<ReshardingPiece> pieces;
  for (int part = 0; part < to.parts; ++part)
    for (int tensor = 0; tensor < to.tensor; ++tensor) {
      const HeldElements wanted = wanted_by(to, kind, part, tensor, elements);
      for (int source = 0; source < from.parts; ++source) {
        const HeldElements shared = overlap(wanted, held_elements({.parts = from.parts}, source, 0, elements));
        for (int sender = 0; sender < senders; ++sender) {
          const int holder = from.scattered ? sender : (tensor * senders + sender) % from.tensor;
          const HeldElements sent = from.scattered ? overlap(wanted, held_elements(from, source, sender, elements))
                                                   : block_of(shared, senders, sender);
          if (sent.count > 0) pieces.push_back({source, holder, part, tensor, sent.first, sent.count});
        }
      }
    }
  return pieces;
}

}}  // namespace plumb::executor
