#include "executor/layers/device/head_exchange.h"

#include <variant>

namespace plumb { inline namespace executor {
namespace {

/// The columns of queries, keys and values in a row; an output has those of queries alone.
HeadShares shares_of(const StepCall& of) {
  const auto& block = std::get<TransformerLayer>(of.program.share());
  const std::int64_t queries = block.heads * block.head_size, keys = block.kv_heads * block.head_size;
  const bool has_keys = of.tensor_read(0).columns > queries;
  return {.rows = of.tensor_read(0).rows,
          .parts = {queries, has_keys ? keys : 0, has_keys ? keys : 0},
          .members = of.program.seat().context.ranks};
}

}  // namespace

void exchange_heads(const StepCall& of) {
  const HeadShares shares = shares_of(of);
  const LayerWork& work = of.program.own();
  const std::int64_t elements = shares.rows * shares.width(), ranks = shares.members;
  const std::int64_t stretch = work.sequence * shares.width() / ranks;
  const bool is_one_sequence = work.microbatch == 1;  // whose members' blocks are in order as they come
  std::byte *const outgoing = of.written(1), *const incoming = of.written(2);
  if (feeds_attention(of.program.plain(), of.step)) {
    of.kernels().split_heads(outgoing, of.read(0), shares);
    std::byte* const arrived = is_one_sequence ? of.written(0) : incoming;
    of.call.context.all_to_all(arrived, outgoing, elements, of.program.element_bytes());
    if (!is_one_sequence) of.kernels().transpose_blocks(of.written(0), incoming, {ranks, work.microbatch, stretch});
    return;
  }
  const std::byte* sent = of.read(0);
  if (!is_one_sequence) {
    of.kernels().transpose_blocks(outgoing, sent, {work.microbatch, ranks, stretch});
    sent = outgoing;
  }
  of.call.context.all_to_all(incoming, sent, elements, of.program.element_bytes());
  of.kernels().join_heads(of.written(0), incoming, shares);
}

}}  // namespace plumb::executor
