#include <array>

#include "tests/executor/kernels/kernel_cases.h"

namespace plumb::test {
namespace {

std::int64_t tokens_of(const AttentionSize& size) {
  return size.batch * size.sequence;
}
std::int64_t statistics(const AttentionSize& size) {
  return size.batch * size.heads * size.sequence;
}

/// Heads that tensor cores take and others; sequences of some tiles, the last one not full.
AttentionSize attention_size(KernelOperands& with) {
  constexpr std::array<std::int64_t, 6> kHeadSizes = {5, 16, 40, 64, 72, 128};
  AttentionSize size{.batch = with.size(1, 2),
                     .sequence = with.size(1, 300),
                     .kv_heads = with.size(1, 2),
                     .head_size = kHeadSizes[static_cast<std::size_t>(with.size(0, 5))]};
  size.heads = size.kv_heads * with.size(1, 3);
  if (with.coin()) size.window = with.size(1, 150);
  if (with.size(0, 4) == 0) size.softcap = 1.5F;
  if (with.size(0, 4) == 0) size.value_size = with.size(1, 100);
  return size;
}

/// Adds sinks to some.
void add_sinks(KernelOperands& with, AttentionOperands& of) {
  if (with.coin()) return;
  of.sinks = with.floats(of.block.size.heads, 2);
  of.dsinks = with.floats(of.block.size.heads);
}

CaseCall whole(KernelOperands& with, double dropout, AttentionSize size) {
  size.dropout = {.probability = dropout, .key = {.seed = with.word()}, .first_sample = 3, .first_head = 2};
  const std::int64_t tokens = tokens_of(size), width = size.query_width() + size.key_value_width();
  void *output = with.stored_room(tokens * size.output_width()), *dqkv = with.stored_room(tokens * width);
  float *log_sum_exp = with.float_room(statistics(size)), *products = with.float_room(statistics(size));
  const void *qkv = with.stored(tokens * width, 2), *doutput = with.stored(tokens * size.output_width());
  const StepNumbers* numbers = dropout > 0 ? with.numbers({.replay = with.word()}) : nullptr;
  AttentionOperands of{.qkv = qkv, .block = block_of_whole(size), .numbers = numbers};
  add_sinks(with, of);
  return [=](DeviceKernels& kernels) {
    kernels.attention_forward(output, nullptr, log_sum_exp, of);
    kernels.attention_backward(dqkv, nullptr, nullptr, products, doutput, output, log_sum_exp, of);
  };
}

CaseCall attention(KernelOperands& with) {
  return whole(with, 0, attention_size(with));
}
CaseCall attention_with_dropout(KernelOperands& with) {
  return whole(with, 0.2, attention_size(with));
}

/// Heads of more than 128 channels, all of which tensor cores take.
AttentionSize wide_size(KernelOperands& with) {
  AttentionSize size{.batch = 1, .sequence = with.size(1, 150), .kv_heads = 1, .head_size = 8 * with.size(17, 32)};
  size.heads = with.size(1, 2);
  if (with.coin()) size.window = with.size(1, 150);
  if (with.coin()) size.softcap = 1.5F;
  return size;
}
CaseCall wide_heads(KernelOperands& with) {
  const double dropout = with.coin() ? 0.2 : 0;
  return whole(with, dropout, wide_size(with));
}
CaseCall heads_of_two_widths(KernelOperands& with) {
  const double dropout = with.coin() ? 0.2 : 0;
  AttentionSize size = wide_size(with);
  size.head_size = 192;
  size.value_size = 8 * with.size(1, 16);
  return whole(with, dropout, size);
}

/// A rank of a ring of two: its own block, then the other one's. A rank has one run of tokens, or two with the other's
/// between them.
CaseCall ring(KernelOperands& with, double dropout) {
  AttentionSize size = attention_size(with);
  size.dropout = {.probability = dropout, .key = {.seed = with.word()}};
  const std::int64_t tokens = tokens_of(size), s = size.sequence;
  const std::int64_t width = size.query_width() + size.key_value_width();
  void *output = with.stored_room(tokens * size.output_width()), *dqkv = with.stored_room(tokens * width);
  float *sums = with.float_room(tokens * size.output_width()), *dsums = with.float_room(tokens * size.query_width());
  float *log_sum_exp = with.float_room(statistics(size)), *products = with.float_room(statistics(size));
  const void *qkv = with.stored(tokens * width, 2), *doutput = with.stored(tokens * size.output_width());
  const std::int64_t run = size.sequence / 2;
  const bool is_divided = size.sequence % 2 == 0 && with.coin();
  const RunsOfTokens own = is_divided ? RunsOfTokens{.first = 0, .second = 3 * run, .split = run} : one_run(s, s);
  const RunsOfTokens other = is_divided ? one_run(run, 2 * run) : one_run(0, s);
  std::array<AttentionOperands, 2> blocks;
  std::array<float*, 2> gradients{};
  for (std::size_t i = 0; i < 2; ++i) {
    blocks[i] = {.qkv = qkv,
                 .keys_values = with.stored(tokens * size.key_value_width(), 2),
                 .block = {.size = size, .queries = own, .keys = i == 0 ? own : other, .is_first = i == 0}};
    gradients[i] = with.floats(tokens * size.key_value_width());
  }
  add_sinks(with, blocks[1]);
  return [=](DeviceKernels& kernels) {
    kernels.attention_forward(nullptr, sums, log_sum_exp, blocks[0]);
    kernels.attention_forward(output, sums, log_sum_exp, blocks[1]);
    kernels.attention_backward(nullptr, gradients[0], dsums, products, doutput, output, log_sum_exp, blocks[0]);
    kernels.attention_backward(dqkv, gradients[1], dsums, products, doutput, output, log_sum_exp, blocks[1]);
  };
}

CaseCall blocks(KernelOperands& with) {
  return ring(with, 0);
}
CaseCall blocks_with_dropout(KernelOperands& with) {
  return ring(with, 0.3);
}

CaseCall slices(KernelOperands& with) {
  const AttentionSize size = attention_size(with);
  AttentionSlice slice{.size = size, .first = with.size(0, size.sequence - 1)};
  slice.count = with.size(1, size.sequence - slice.first);
  const std::int64_t tokens = size.batch * slice.count, width = size.query_width() + size.key_value_width();
  const std::int64_t rows = size.batch * size.heads * slice.count;
  void *output = with.stored_room(tokens * size.output_width()), *dqkv = with.stored(tokens * width);
  float *log_sum_exp = with.float_room(rows), *products = with.float_room(rows);
  float* gradients = with.floats(tokens_of(size) * size.key_value_width());
  const void* doutput = with.stored(tokens * size.output_width());
  AttentionOperands of{.qkv = with.stored(tokens * width, 2),
                       .keys_values = with.stored(tokens_of(size) * size.key_value_width(), 2),
                       .block = block_of_slice(slice)};
  add_sinks(with, of);
  return [=](DeviceKernels& kernels) {
    kernels.attention_forward(output, nullptr, log_sum_exp, of);
    kernels.attention_backward(dqkv, gradients, nullptr, products, doutput, output, log_sum_exp, of);
  };
}

CaseCall exchanged_heads(KernelOperands& with) {
  const std::int64_t members = with.size(2, 4);
  const HeadShares size{.rows = with.size(1, 40),
                        .parts = {members * with.size(1, 30), members * with.size(1, 9), members * with.size(0, 9)},
                        .members = members};
  const std::int64_t elements = size.rows * size.width();
  const void* rows = with.stored(elements);
  void *blocks = with.stored_room(elements), *joined = with.stored_room(elements);
  return [=](DeviceKernels& kernels) {
    kernels.split_heads(blocks, rows, size);
    kernels.join_heads(joined, blocks, size);
  };
}

CaseCall latent_heads(KernelOperands& with) {
  LatentHeads size{.rows = with.size(1, 40),
                   .heads = with.size(1, 5),
                   .head_size = with.size(1, 60),
                   .value_size = with.size(1, 60)};
  size.shared = with.size(0, size.head_size);
  const std::int64_t queries = size.rows * size.heads * size.head_size, shared = size.rows * size.shared;
  const std::int64_t kv = size.rows * size.heads * size.key_value_size();
  const std::int64_t joined = 2 * queries + size.rows * size.heads * size.value_size;
  const void *of_queries = with.stored(queries), *of_shared = with.stored(shared), *of_kv = with.stored(kv);
  void *qkv = with.stored_room(joined), *dqueries = with.stored_room(queries), *dshared = with.stored_room(shared),
       *dkv = with.stored_room(kv);
  return [=](DeviceKernels& kernels) {
    kernels.join_latent_heads(qkv, of_queries, of_shared, of_kv, size);
    kernels.split_latent_heads(dqueries, dshared, dkv, qkv, size);
  };
}

CaseCall exchanged_blocks(KernelOperands& with) {
  const BlockMatrix size{.rows = with.size(1, 7), .columns = with.size(1, 7), .elements = with.size(1, 90)};
  const NormSize narrow{with.size(1, 30), with.size(1, 90)};
  const std::int64_t width = narrow.columns + with.size(0, 9), elements = size.rows * size.columns * size.elements;
  const void* from = with.stored(elements);
  void *to = with.stored_room(elements), *narrowed = with.stored(narrow.rows * width);
  const float* wide = with.floats(narrow.rows * narrow.columns);
  return [=](DeviceKernels& kernels) {
    kernels.transpose_blocks(to, from, size);
    kernels.narrow_columns(narrowed, width, wide, narrow);
  };
}

}  // namespace

void append_attention_cases(std::vector<KernelCase>& cases) {
  cases.insert(cases.end(), {{"attention", attention},
                             {"attention with dropout", attention_with_dropout},
                             {"attention of wide heads", wide_heads},
                             {"attention of heads of two widths", heads_of_two_widths},
                             {"attention in blocks of a ring", blocks},
                             {"attention in blocks of a ring with dropout", blocks_with_dropout},
                             {"attention of a slice", slices},
                             {"heads of latent attention", latent_heads},
                             {"heads for an all-to-all", exchanged_heads},
                             {"blocks for an all-to-all", exchanged_blocks}});
}

}  // namespace plumb::test
