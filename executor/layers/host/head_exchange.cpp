#include "executor/layers/host/head_exchange.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

namespace plumb { inline namespace executor {
namespace {

/// Elements of a row's queries, keys and values, or of its outputs alone, over all heads of this rank.
struct RowParts {
  std::array<std::int64_t, 3> elements{};
  std::int64_t sum() const { return elements[0] + elements[1] + elements[2]; }
};

RowParts parts_of(const HostStep& of) {
  const auto& block = std::get<TransformerLayer>(of.program.share());
  const std::int64_t queries = block.heads * block.head_size, keys = block.kv_heads * block.head_size;
  if (of.program.tensor(of.step.reads[0]).columns == queries) return {{queries, 0, 0}};
  return {{queries, keys, keys}};
}

/// Calls visit(element of the own-token rows, element of the blocks, count) for member `member`'s heads of all own
/// rows; blocks are [member][b*S][1/n of a row].
template <class Visit>
void for_each_part(const RowParts& parts, std::int64_t rows, int members, int member, Visit visit) {
  std::int64_t block = member * rows * (parts.sum() / members);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t column = row * parts.sum();
    for (const std::int64_t part : parts.elements) {
      const std::int64_t share = part / members;
      visit(column + member * share, block, share);
      column += part;
      block += share;
    }
  }
}

/// Calls visit(element of whole sequences [b*s, row], element of the blocks [member][b*S, row], count): member m has
/// tokens [m S, (m+1) S) of each sequence.
template <class Visit>
void for_each_run(const LayerWork& own, std::int64_t row_elements, int members, Visit visit) {
  const std::int64_t run = own.sequence * row_elements;
  for (int member = 0; member < members; ++member)
    for (std::int64_t sequence = 0; sequence < own.microbatch; ++sequence)
      visit((sequence * members + member) * run, (member * own.microbatch + sequence) * run, run);
}

}  // namespace

void exchange_heads(const HostStep& of) {
  const CpuContext& context = of.context();
  const RowParts parts = parts_of(of);
  const int members = context.seat.context.ranks;
  const std::int64_t rows = tokens_in(context.work), elements = rows * parts.sum();
  const float* const from = of.read(0);
  float* const to = of.written(0);
  Tensor outgoing = context.pool->take(elements), incoming = context.pool->take(elements);
  const auto swap_blocks = [&] {
    context.groups.context->run(all_to_all(incoming.values(), std::as_const(outgoing).values()));
  };
  if (feeds_attention(of.program.steps(), of.step)) {
    for (int member = 0; member < members; ++member)
      for_each_part(parts, rows, members, member, [&](std::int64_t row, std::int64_t block, std::int64_t count) {
        std::copy_n(from + row, count, outgoing.data() + block);
      });
    swap_blocks();
    for_each_run(context.work, parts.sum() / members, members,
                 [&](std::int64_t whole, std::int64_t block, std::int64_t count) {
                   std::copy_n(incoming.data() + block, count, to + whole);
                 });
    return;
  }
  for_each_run(context.work, parts.sum() / members, members,
               [&](std::int64_t whole, std::int64_t block, std::int64_t count) {
                 std::copy_n(from + whole, count, outgoing.data() + block);
               });
  swap_blocks();
  for (int member = 0; member < members; ++member)
    for_each_part(parts, rows, members, member, [&](std::int64_t row, std::int64_t block, std::int64_t count) {
      std::copy_n(incoming.data() + block, count, to + row);
    });
}

}}  // namespace plumb::executor
