#pragma once
// A collective is a value that names its operation, the memory it works on and its root. communicator.h runs it.
//
//   communicator.run(all_reduce(gradients));
//
// A buffer is divided into one block for each member: by `bounds` where these are given, otherwise as equally as can be
// (block_begin). Collectives work in place.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "schedules/collective_kind.h"

namespace plumb { inline namespace executor {

struct Collective {
  CollectiveKind op = CollectiveKind::kAllReduce;
  std::span<float> values;               ///< the whole buffer; in all_to_all and shift the incoming values
  std::span<const std::int64_t> bounds;  ///< [members + 1] bounds of the blocks of `values`; empty: equal blocks
  std::span<const float> outgoing;       ///< outgoing values of all_to_all and shift
  /// [members + 1] Bounds of the blocks of `outgoing`; empty: equal blocks.
  std::span<const std::int64_t> outgoing_bounds;
  int root = 0;      ///< member that is the root
  int distance = 1;  ///< distance of shift; may be negative
};

// values: [the whole buffer, the same number of elements on every member]
Collective broadcast(std::span<float> values, int root);
Collective scatter(std::span<float> values, int root, std::span<const std::int64_t> bounds = {});
Collective gather(std::span<float> values, int root, std::span<const std::int64_t> bounds = {});
Collective reduce(std::span<float> values, int root);
Collective all_gather(std::span<float> values, std::span<const std::int64_t> bounds = {});
Collective reduce_scatter(std::span<float> values, std::span<const std::int64_t> bounds = {});
Collective all_reduce(std::span<float> values);

/// Block i of `outgoing` goes to member i, and block i of `incoming` comes from member i. Both ends must give a block
/// the same size, so without bounds the number of members must divide the buffers. The buffers must not overlap.
Collective all_to_all(std::span<float> incoming, std::span<const float> outgoing,
                      std::span<const std::int64_t> incoming_bounds = {},
                      std::span<const std::int64_t> outgoing_bounds = {});

/// The buffers must not overlap.
Collective shift(std::span<float> incoming, std::span<const float> outgoing, int distance = 1);

}}  // namespace plumb::executor
