#pragma once
// Exchanges of the layers of a tensor group. Between layers a rank has all T rows of the activations, or with sequence
// parallelism (Korthikanti et al. 2022) its own T/t of them:
//
//   forward    all_rows ─▶ column-parallel product ─▶ row-parallel product ─▶ sum_rows
//   backward   sum_rows ◀─ column-parallel dgrad   ◀─ row-parallel dgrad   ◀─ all_rows
//
// all_rows does nothing, or with sequence parallelism an all-gather. sum_rows is an all-reduce, or with sequence
// parallelism a reduce-scatter. In a group of one both return their tensor unchanged. Rows are divided in contiguous
// blocks.

#include <cstdint>
#include <utility>

#include "executor/cpu/layers/layer.h"

namespace plumb { inline namespace executor {

/// Return the number of ranks of the tensor group, and this rank's number in it.
int tensor_ranks(const CpuContext& context);
int tensor_rank(const CpuContext& context);

/// Returns the rows that a rank has between layers: T, or T/t.
std::int64_t own_rows(const CpuContext& context);

/// All rows of a tensor: the tensor itself, or a gathered copy.
struct AllRows {
  Tensor gathered;  // empty if not needed
  const float* rows = nullptr;
};

/// own: [own_rows, columns] -> [T, columns]. `own` must outlive the result.
AllRows all_rows(const CpuContext& context, const Tensor& own, std::int64_t columns);

/// partial: [T, columns] -> [own_rows, columns] of the sum over the group.
Tensor sum_rows(const CpuContext& context, Tensor partial, std::int64_t columns);

/// Replaces the columns that `sharers` neighbouring ranks have in common by the sum of theirs, on each of them. rows:
/// [T, width], columns [first, width)
void sum_shared_columns(const CpuContext& context, int sharers, Tensor& rows, std::int64_t width, std::int64_t first);

/// Applies dropout `number` of the layer to the own rows; y may be x. x, y: [own_rows, columns]
void drop_own_rows(const LayerCall& call, std::uint64_t number, float* y, const float* x, std::int64_t columns,
                   double probability);

/// Adds to the gradients [count] of parameters that every rank has the values that `add_to` adds for this rank's own
/// rows. With sequence parallelism these values are summed over the group first.
template <class AddTo>
void add_replicated(const CpuContext& context, float* gradients, std::int64_t count, AddTo add_to) {
  if (tensor_ranks(context) == 1 || !context.work.sequence_parallel) {
    add_to(gradients);
    return;
  }
  Tensor part = context.pool->take_zeros(count);
  add_to(part.data());
  context.groups.tensor->run(all_reduce(part.values()));
  for (std::int64_t i = 0; i < count; ++i) gradients[i] += part.data()[i];
}

}}  // namespace plumb::executor
