#include "kernels/simt/attention/attention_view.h"

#include <doctest/doctest.h>

#include "kernels/cpu/attention/attention_piece.h"
#include "tests/kernels/simt/attention/run_attention.h"

namespace plumb::test {
namespace {

/// Returns the runs of a rank of a ring: runs r and 2n-1-r, of `run` tokens each.
RunsOfTokens runs_of(std::int64_t rank, std::int64_t ranks, std::int64_t run) {
  return {.first = rank * run, .second = (2 * ranks - 1 - rank) * run, .split = run};
}

/// Tensor cores round probabilities before they weigh rows.
template <class S>
double gradient_tolerance(const RunAttention& run) {
  return run.lanes > 0 ? 4 * kFloatTolerance : 2 * tolerance<S>();
}

template <class Visit>
void for_each_piece(const AttentionBlock& block, Visit visit) {
  const auto run_of = [&](const RunsOfTokens& runs, int which) {
    return AttentionRun{.rows = block.size.sequence,
                        .row = which * runs.split,
                        .position = which == 0 ? runs.first : runs.second,
                        .count = runs.split};
  };
  for (const int of_queries : {0, 1})
    for (const int of_keys : {0, 1}) {
      const AttentionPiece piece{block.size, run_of(block.queries, of_queries), run_of(block.keys, of_keys)};
      if (piece.keys.position < piece.queries.position + piece.queries.count) visit(piece);
    }
}

template <class S>
void check_ring(AttentionSize size, std::int64_t ranks, std::int64_t rank, const RunAttention& run) {
  const std::int64_t half = size.sequence / 2, rows = size.batch * size.sequence;
  const std::int64_t out = size.heads * size.head_size, key_width = 2 * size.kv_heads * size.head_size;
  const std::int64_t width = out + key_width, statistics = rows * size.heads;
  const std::vector<S> qkv = stored<S>(random_values(rows * width, 1, 2.0F));
  const std::vector<S> doutput = stored<S>(random_values(rows * out, 2));
  std::vector<std::vector<S>> blocks;
  for (std::int64_t i = 0; i < ranks; ++i)
    blocks.push_back(stored<S>(random_values(rows * key_width, static_cast<unsigned>(10 + i), 2.0F)));
  const auto block_at = [&](std::int64_t step) {
    return AttentionBlock{.size = size,
                          .queries = runs_of(rank, ranks, half),
                          .keys = runs_of((rank - step + ranks) % ranks, ranks, half),
                          .is_first = step == 0};
  };
  const std::int64_t room = attention_piece_scratch_elements({size, {.count = half}, {.count = half}});
  Values output(rows * out), log_sum_exp(statistics, -INFINITY), scratch(room), own_log_sum_exp(statistics);
  Values sums(rows * out), products(statistics);
  std::vector<S> own_output(rows * out), own_dqkv(rows * width);
  AttentionTensors<S> tensors{.sums = sums.data(),
                              .log_sum_exp = own_log_sum_exp.data(),
                              .doutput = doutput.data(),
                              .products = products.data()};
  const auto view_of = [&](const std::vector<S>& keys_values, const AttentionBlock& block) {
    return simt::AttentionView<S>{.qkv = qkv.data(), .keys_values = keys_values.data(), .block = block};
  };
  for (std::int64_t step = 0; step < ranks; ++step) {
    const AttentionBlock block = block_at(step);
    const std::vector<S>& keys_values = blocks[static_cast<std::size_t>(step)];
    for_each_piece(block, [&](const AttentionPiece& piece) {
      attention_piece_forward(output.data(), log_sum_exp.data(), widened_all(qkv).data(),
                              widened_all(keys_values).data(), piece, scratch.data());
    });
    tensors.output = step + 1 == ranks ? own_output.data() : nullptr;
    run.forward(view_of(keys_values, block), tensors);
  }
  CHECK(relative_difference(widened_all(own_output), output) < tolerance<S>());
  CHECK(relative_difference(own_log_sum_exp, log_sum_exp) < kFloatTolerance);

  Values dqkv(rows * width);
  for (std::int64_t step = 0; step < ranks; ++step) {
    const AttentionBlock block = block_at(step);
    const std::vector<S>& keys_values = blocks[static_cast<std::size_t>(step)];
    const Values before = random_values(rows * key_width, 5);  // gradients that other ranks have added
    Values expected = before, gradients = before;
    for_each_piece(block, [&](const AttentionPiece& piece) {
      attention_piece_backward(dqkv.data(), expected.data(), widened_all(doutput).data(), widened_all(qkv).data(),
                               widened_all(keys_values).data(), widened_all(own_output).data(), own_log_sum_exp.data(),
                               piece, scratch.data());
    });
    tensors.gradients = gradients.data();
    tensors.dqkv = step + 1 == ranks ? own_dqkv.data() : nullptr;
    run.backward(view_of(keys_values, block), tensors);
    CHECK(relative_difference(gradients, expected) < gradient_tolerance<S>(run));
  }
  CHECK(relative_difference(widened_all(own_dqkv), dqkv) < 4 * tolerance<S>());
}

/// Checks slice by slice in the order of a stage: each slice keeps its keys and values, and the last one's gradients
/// come first.
template <class S>
void check_slices(const AttentionSize& size, const std::vector<std::int64_t>& bounds, const RunAttention& run) {
  const std::int64_t rows = size.batch * size.sequence, out = size.heads * size.head_size;
  const std::int64_t key_width = 2 * size.kv_heads * size.head_size, width = out + key_width;
  Values scratch(attention_scratch_elements(size));
  std::vector<S> keys_values = stored<S>(random_values(rows * key_width, 1, 2.0F));
  const auto of_slice = [&](std::size_t i) {
    return AttentionSlice{.size = size, .first = bounds[i], .count = bounds[i + 1] - bounds[i]};
  };
  for (std::size_t i = bounds.size() - 1; i-- > 0;) {
    const AttentionSlice slice = of_slice(i);
    const AttentionBlock block = block_of_slice(slice);
    const std::int64_t own = size.batch * slice.count;
    const std::vector<S> qkv = stored<S>(random_values(own * width, static_cast<unsigned>(2 + i), 2.0F));
    const std::vector<S> doutput = stored<S>(random_values(own * out, static_cast<unsigned>(12 + i)));
    std::vector<S> own_output(own * out), own_dqkv(own * width);
    Values output(own * out), log_sum_exp(own * size.heads), own_log_sum_exp(own * size.heads);
    Values products(own * size.heads), dqkv(own * width);
    attention_slice_forward(output.data(), log_sum_exp.data(), widened_all(qkv).data(), widened_all(keys_values).data(),
                            slice, scratch.data());
    const simt::AttentionView<S> of{.qkv = qkv.data(), .keys_values = keys_values.data(), .block = block};
    AttentionTensors<S> tensors{.output = own_output.data(),
                                .log_sum_exp = own_log_sum_exp.data(),
                                .doutput = doutput.data(),
                                .dqkv = own_dqkv.data(),
                                .products = products.data()};
    run.forward(of, tensors);
    CHECK(relative_difference(widened_all(own_output), output) < tolerance<S>());
    CHECK(relative_difference(own_log_sum_exp, log_sum_exp) < kFloatTolerance);
    // Gradients from later slices.
    const Values before = random_values(rows * key_width, static_cast<unsigned>(22 + i));
    Values expected = before, gradients = before;
    attention_slice_backward(dqkv.data(), expected.data(), widened_all(doutput).data(), widened_all(qkv).data(),
                             widened_all(keys_values).data(), widened_all(own_output).data(), own_log_sum_exp.data(),
                             slice, scratch.data());
    tensors.gradients = gradients.data();
    run.backward(of, tensors);
    CHECK(relative_difference(gradients, expected) < gradient_tolerance<S>(run));
    CHECK(relative_difference(widened_all(own_dqkv), dqkv) < 4 * tolerance<S>());
  }
}

}  // namespace

TEST_CASE("a row stands where its run does, and the first row behind a position is found") {
  const RunsOfTokens runs{.first = 3, .second = 9, .split = 3};  // positions 3 4 5 9 10 11
  for (std::int64_t position = 0; position < 14; ++position) {
    std::int64_t row = 0;
    while (row < 6 && runs.position(row) < position) ++row;
    CHECK(runs.row_from(position, 6) == row);
  }
}

TEST_CASE_TEMPLATE("blocks of a ring on a GPU add up as the CPU's pieces do, forward and backward", S, float, Bf16) {
  check_ring<S>({.batch = 2, .sequence = 10, .heads = 3, .kv_heads = 1, .head_size = 12}, 3, 0, {.lanes = 2});
  check_ring<S>({.batch = 1, .sequence = 10, .heads = 3, .kv_heads = 1, .head_size = 12}, 3, 2, {.lanes = 4});
  check_ring<S>({.batch = 1, .sequence = 14, .heads = 2, .kv_heads = 1, .head_size = 70, .window = 5}, 2, 1,
                {.lanes = 16});
  check_ring<S>({.batch = 1, .sequence = 2, .heads = 1, .kv_heads = 1, .head_size = 256}, 2, 0, {.lanes = 32});
}

TEST_CASE_TEMPLATE("blocks of a ring on tensor cores add up as the CPU's pieces do", S, Bf16, Fp16) {
  for (const std::int64_t rank : {0, 1, 2}) {
    check_ring<S>({.batch = 2, .sequence = 86, .heads = 3, .kv_heads = 1, .head_size = 40}, 3, rank, {});
    check_ring<S>({.batch = 1, .sequence = 134, .heads = 2, .kv_heads = 2, .head_size = 72, .window = 90}, 3, rank, {});
  }
}

TEST_CASE("they drop the probabilities that the CPU's drop") {
  const AttentionDropout dropout{
      .probability = 0.3, .key = {.seed = 5, .step = 2, .layer = 3}, .first_sample = 7, .first_head = 1};
  check_ring<float>(
      {.batch = 2, .sequence = 10, .heads = 4, .kv_heads = 2, .head_size = 12, .window = 12, .dropout = dropout}, 2, 1,
      {.lanes = 4});
  check_ring<Bf16>({.batch = 2, .sequence = 70, .heads = 4, .kv_heads = 2, .head_size = 16, .dropout = dropout}, 2, 1,
                   {});
}

TEST_CASE_TEMPLATE("slices of sequences on a GPU attend to what came before as the CPU's do", S, float, Bf16) {
  const AttentionDropout dropout{.probability = 0.3, .key = {.seed = 5, .step = 2, .layer = 3}, .first_sample = 7};
  check_slices<S>({.batch = 2, .sequence = 11, .heads = 3, .kv_heads = 1, .head_size = 12}, {0, 3, 7, 11},
                  {.lanes = 2});
  check_slices<S>({.batch = 1, .sequence = 40, .heads = 2, .kv_heads = 2, .head_size = 20, .window = 7}, {0, 13, 40},
                  {.lanes = 8});
  check_slices<S>({.batch = 2, .sequence = 9, .heads = 4, .kv_heads = 2, .head_size = 12, .dropout = dropout},
                  {0, 4, 9}, {.lanes = 4});
}

}  // namespace plumb::test
