#include "executor/cpu/tensor_parallel.h"

#include <algorithm>
#include <cassert>

namespace plumb {
namespace {

bool divides_rows(const CpuContext& context) {
  return tensor_ranks(context) > 1 && context.work.sequence_parallel;
}

}  // namespace

int tensor_ranks(const CpuContext& context) {
  return context.groups.tensor == nullptr ? 1 : context.groups.tensor->members();
}

int tensor_rank(const CpuContext& context) {
  return context.groups.tensor == nullptr ? 0 : context.groups.tensor->member();
}

std::int64_t own_rows(const CpuContext& context) {
  const std::int64_t rows = tokens_of(context.work);
  assert(!divides_rows(context) || rows % tensor_ranks(context) == 0);
  return divides_rows(context) ? rows / tensor_ranks(context) : rows;
}

AllRows all_rows(const CpuContext& context, const Tensor& own, std::int64_t columns) {
  if (!divides_rows(context)) return {.rows = own.data()};
  assert(own.elements() == own_rows(context) * columns);
  AllRows all{.gathered = context.pool->take(tokens_of(context.work) * columns)};
  std::ranges::copy(own.values(), all.gathered.data() + tensor_rank(context) * own.elements());
  context.groups.tensor->run(all_gather(all.gathered.values()));
  all.rows = all.gathered.data();
  return all;
}

Tensor sum_rows(const CpuContext& context, Tensor partial, std::int64_t columns) {
  if (tensor_ranks(context) == 1) return partial;
  if (!divides_rows(context)) {
    context.groups.tensor->run(all_reduce(partial.values()));
    return partial;
  }
  context.groups.tensor->run(reduce_scatter(partial.values()));
  const std::int64_t elements = own_rows(context) * columns;
  Tensor own = context.pool->take(elements);
  std::copy_n(partial.data() + tensor_rank(context) * elements, elements, own.data());
  return own;
}

}  // namespace plumb
