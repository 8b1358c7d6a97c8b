#pragma once
// What the ranks of a tensor group exchange inside a layer's pass (Shoeybi et al. 2019): partial products become their
// sum on every rank, behind row-parallel products of the forward and column-parallel ones of the backward.

#include <cstdint>

#include "executor/device/recorded_calls.h"
#include "executor/nccl/rank_calls.h"

namespace plumb {

struct DeviceTensorGroup {
  CallRecorder* recorder = nullptr;  ///< of the call; may be null in a group of one
  NcclSeat seat;

  int ranks() const { return seat.members; }
  int rank() const { return seat.member; }

  /// values: [elements], as activations are stored. Nothing in a group of one.
  void sum(void* values, std::int64_t elements) const {
    if (ranks() > 1)
      recorder->exchange({.kind = NcclKind::kAllReduce,
                          .communicator = seat.number,
                          .member = seat.member,
                          .is_stored = true,
                          .values = static_cast<std::byte*>(values),
                          .elements = elements});
  }

  /// The same in fp32, whatever activations are stored in.
  void sum_singles(float* values, std::int64_t elements) const {
    if (ranks() > 1)
      recorder->exchange({.kind = NcclKind::kAllReduce,
                          .communicator = seat.number,
                          .member = seat.member,
                          .values = reinterpret_cast<std::byte*>(values),
                          .elements = elements});
  }

  /// Everyone gets each rank's block. values: [ranks, elements / ranks], fp32
  void gather(float* values, std::int64_t elements) const {
    if (ranks() > 1)
      recorder->exchange({.kind = NcclKind::kAllGather,
                          .communicator = seat.number,
                          .member = seat.member,
                          .values = reinterpret_cast<std::byte*>(values),
                          .elements = elements});
  }
};

}  // namespace plumb
