#pragma once
// The exchanges of a tensor group's ranks inside a layer's pass (Shoeybi et al. 2019): partial products become their
// sum on every rank, behind row-parallel products of the forward and column-parallel ones of the backward. With
// sequence parallelism (Korthikanti et al. 2022) a rank has a block of the rows between products: it gathers all rows
// before a product, and gets its block of the sum behind one.

#include <cstdint>

#include "executor/device/calls/recorded_calls.h"
#include "executor/nccl/communicator_numbers.h"

namespace plumb { inline namespace executor {

struct DeviceTensorGroup {
  CallRecorder* recorder = nullptr;  ///< of the call; null in a group of one
  NcclSeat seat;
  bool divides_rows = false;  ///< sequence parallelism: between products each rank has a block of them

  int ranks() const { return seat.members; }
  int rank() const { return seat.member; }

  /// Sums values [elements] as activations are stored. Does nothing in a group of one.
  void sum(void* values, std::int64_t elements) const {
    if (ranks() > 1)
      recorder->exchange({.kind = CollectiveKind::kAllReduce,
                          .communicator = seat.number,
                          .member = seat.member,
                          .is_stored = true,
                          .values = static_cast<std::byte*>(values),
                          .elements = elements});
  }

  /// Returns all rows of a product: the own ones, or where rows are divided all of them in `gathered`. own: this rank's
  /// block of stored rows, of `elements` in all.
  std::byte* all_rows(std::byte* own, std::byte* gathered, std::int64_t elements, std::int64_t element_bytes) const {
    if (!divides_rows) return own;
    const std::int64_t bytes = elements / ranks() * element_bytes;
    recorder->copy(gathered + rank() * bytes, own, bytes);
    exchange(CollectiveKind::kAllGather, gathered, elements);
    return gathered;
  }

  /// Sums partial stored rows [elements]. Returns the address of the sum, or of this rank's block of it.
  std::byte* sum_rows(std::byte* partial, std::int64_t elements, std::int64_t element_bytes) const {
    if (!divides_rows) {
      sum(partial, elements);
      return partial;
    }
    exchange(CollectiveKind::kReduceScatter, partial, elements);
    return partial + rank() * (elements / ranks() * element_bytes);
  }

  /// Adds to gradients that every rank has those that `add_to(float*)` adds from this rank's rows; where rows are
  /// divided the sum of these over the group, by way of `part`. gradients, part: [count]
  template <class AddTo>
  void add_replicated(float* gradients, float* part, std::int64_t count, AddTo add_to) const {
    if (!divides_rows) return add_to(gradients);
    recorder->fill_zero(part, count);
    add_to(part);
    recorder->exchange({.kind = CollectiveKind::kAllReduce,
                        .communicator = seat.number,
                        .member = seat.member,
                        .values = reinterpret_cast<std::byte*>(part),
                        .elements = count});
    recorder->add_gradients(gradients, gradients, part, count);
  }

  /// Sums values [elements] in fp32, whatever activations are stored in.
  void sum_singles(float* values, std::int64_t elements) const {
    if (ranks() > 1)
      recorder->exchange({.kind = CollectiveKind::kAllReduce,
                          .communicator = seat.number,
                          .member = seat.member,
                          .values = reinterpret_cast<std::byte*>(values),
                          .elements = elements});
  }

  /// Gathers each rank's block. values: [ranks, elements / ranks], fp32
  void gather(float* values, std::int64_t elements) const {
    if (ranks() > 1)
      recorder->exchange({.kind = CollectiveKind::kAllGather,
                          .communicator = seat.number,
                          .member = seat.member,
                          .values = reinterpret_cast<std::byte*>(values),
                          .elements = elements});
  }

 private:
  void exchange(CollectiveKind kind, std::byte* values, std::int64_t elements) const {
    recorder->exchange({.kind = kind,
                        .communicator = seat.number,
                        .member = seat.member,
                        .is_stored = true,
                        .values = values,
                        .elements = elements});
  }
};

}}  // namespace plumb::executor
