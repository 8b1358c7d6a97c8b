#include "executor/cpu/layers/tensor_parallel.h"

#include <algorithm>
#include <cassert>
#include <vector>

namespace plumb { inline namespace executor {
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

/// Sums once over the whole group, in which each set of sharers has columns of its own.
void sum_shared_columns(const CpuContext& context, int sharers, Tensor& rows, std::int64_t width, std::int64_t first) {
  if (sharers == 1) return;
  const std::int64_t count = rows.elements() / width, columns = width - first;
  const int sets = tensor_ranks(context) / sharers, set = tensor_rank(context) / sharers;
  Tensor all = context.pool->take_zeros(sets * count * columns);
  float* own = all.data() + set * count * columns;
  for (std::int64_t row = 0; row < count; ++row)
    std::copy_n(rows.data() + row * width + first, columns, own + row * columns);
  context.groups.tensor->run(all_reduce(all.values()));
  for (std::int64_t row = 0; row < count; ++row)
    std::copy_n(own + row * columns, columns, rows.data() + row * width + first);
}

void drop_own_rows(const LayerCall& call, std::uint64_t number, float* y, const float* x, std::int64_t columns,
                   double probability) {
  const CpuContext& context = call.context;
  const std::int64_t own = own_rows(context), first = divides_rows(context) ? tensor_rank(context) * own : 0;
  const DropoutKey key = dropout_site(call, number, columns).key;
  std::vector<DropoutRows> runs;
  std::int64_t row = 0;
  for (std::int64_t sample = 0; sample < context.work.microbatch; ++sample)
    for (const TokenRange& run : {call.place.slice, call.place.second_slice}) {
      const std::int64_t begin = std::clamp(first - row, std::int64_t{0}, run.count);
      const std::int64_t end = std::clamp(first + own - row, begin, run.count);
      if (begin < end)
        runs.push_back({.first_sample = call.place.first_sample + sample,
                        .count = 1,
                        .first_token = run.first + begin,
                        .tokens = end - begin,
                        .columns = columns});
      row += run.count;
    }
  context.kernels.dropout(y, x, key, runs, probability);
}

}}  // namespace plumb::executor
