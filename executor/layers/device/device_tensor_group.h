#pragma once
// The exchanges of a tensor group's ranks inside a layer's pass (Shoeybi et al. 2019): partial products become their
// sum on every rank, behind row-parallel products of the forward and column-parallel ones of the backward. With
// sequence parallelism (Korthikanti et al. 2022) a rank has a block of the rows between products: it gathers all rows
// before a product, and gets its block of the sum behind one.

#include <cstdint>

#include "executor/groups/communicator_numbers.h"
#include "executor/program/calls/recorded_calls.h"

namespace plumb { inline namespace executor {

struct DeviceTensorGroup {
  CallRecorder* recorder = nullptr;  ///< of the call; null in a group of one
  CommunicatorSeat seat;
  bool divides_rows = false;  ///< sequence parallelism: between products each rank has a block of them

  int rank() const { return seat.member; }

  /// Enqueues a collective in place: values [elements], as activations are stored or in fp32. Of a gather, and of the
  /// result of a reduce-scatter, a rank's own block is at its place among all of them.
  void exchange(CollectiveKind kind, std::byte* values, std::int64_t elements, bool is_stored) const {
    recorder->exchange({.kind = kind,
                        .communicator = seat.number,
                        .member = seat.member,
                        .is_stored = is_stored,
                        .values = values,
                        .elements = elements});
  }
};

}}  // namespace plumb::executor
