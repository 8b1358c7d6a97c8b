#include "kernels/simt/experts/expert_products.h"

#include <cstring>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "kernels/cpu/products/gemm.h"
#include "kernels/simt/experts/warp_expert_products.h"
#include "tests/kernels/simt/host_block.h"
#include "tests/kernels/simt/stored.h"

namespace plumb::test {
namespace {

/// The stored results of the three products.
template <class S>
struct Products {
  std::vector<S> y, dx;
  Values dweights;
};

/// A problem: tensors, and bounds of the experts' rows; no expert has the last rows.
template <class S>
struct Problem {
  Problem(std::vector<std::int32_t> rows_before, std::int64_t room, std::int64_t outs, std::int64_t ins)
      : bounds(std::move(rows_before)), rows{bounds.data(), room, std::ssize(bounds) - 1}, out(outs), in(ins) {
    const unsigned seed = std::random_device()();
    x = stored<S>(random_values(room * in, seed));
    dy = stored<S>(random_values(room * out, seed + 1));
    weights = stored<S>(random_values(rows.experts * out * in, seed + 2));
    dweights = random_values(rows.experts * out * in, seed + 3);
  }

  Products<S> fresh() const {
    const auto held = static_cast<std::size_t>(rows.rows);
    return {.y = stored<S>(Values(held * static_cast<std::size_t>(out), 7)),
            .dx = stored<S>(Values(held * static_cast<std::size_t>(in), 7)),
            .dweights = dweights};
  }

  Products<S> on_lanes(int blocks, int lanes) const {
    Products<S> own = fresh();
    run_on_host(simt::ExpertRowProduct<S, S, S, simt::ExpertForm::kForward>{own.y.data(), x.data(), weights.data(),
                                                                            rows, out, in},
                blocks, lanes);
    run_on_host(simt::ExpertRowProduct<S, S, S, simt::ExpertForm::kInputGrad>{own.dx.data(), dy.data(), weights.data(),
                                                                              rows, in, out},
                blocks, lanes);
    run_on_host(simt::ExpertWeightGrad<S, S>{own.dweights.data(), dy.data(), x.data(), rows, out, in}, blocks, lanes);
    return own;
  }

  Products<S> on_warps(int blocks, WarpOrder order) const {
    using Form = simt::ExpertForm;
    Products<S> own = fresh();
    run_warps_on_host(
        simt::WarpExpertProduct<S, S, Form::kForward>{own.y.data(), x.data(), weights.data(), rows, out, in, 0}, blocks,
        order);
    run_warps_on_host(
        simt::WarpExpertProduct<S, S, Form::kInputGrad>{own.dx.data(), dy.data(), weights.data(), rows, in, out, 0},
        blocks, order);
    run_warps_on_host(simt::WarpExpertProduct<S, float, Form::kWeightGrad>{own.dweights.data(), dy.data(), x.data(),
                                                                           rows, in, 0, out},
                      blocks, order);
    return own;
  }

  /// Compares with the CPU, expert by expert; rows without an expert must stay as they were.
  void check(const Products<S>& own) const {
    Values y(own.y.size(), 7), dx(own.dx.size(), 7), gradients = dweights;
    const Values wide_x = widened_all(x), wide_dy = widened_all(dy), wide_weights = widened_all(weights);
    for (std::int64_t e = 0; e < rows.experts; ++e) {
      const std::int64_t first = rows.begin(e), count = rows.end(e) - first;
      if (count == 0) continue;
      const float* weight = wide_weights.data() + e * out * in;
      linear_forward(y.data() + first * out, wide_x.data() + first * in, weight, {count, out, in});
      linear_input_grad(dx.data() + first * in, wide_dy.data() + first * out, weight, {count, in, out});
      linear_weight_grad(gradients.data() + e * out * in, wide_dy.data() + first * out, wide_x.data() + first * in,
                         {out, in, count});
    }
    CHECK(relative_difference(widened_all(own.y), y) < tolerance<S>());
    CHECK(relative_difference(widened_all(own.dx), dx) < tolerance<S>());
    CHECK(relative_difference(own.dweights, gradients) < 5 * kFloatTolerance);
  }

  std::vector<std::int32_t> bounds;
  ExpertRows rows;
  std::int64_t out, in;
  std::vector<S> x, dy, weights;
  Values dweights;
};

template <class S>
bool same_products(const Products<S>& a, const Products<S>& b) {
  return std::memcmp(a.y.data(), b.y.data(), a.y.size() * sizeof(S)) == 0 &&
         std::memcmp(a.dx.data(), b.dx.data(), a.dx.size() * sizeof(S)) == 0 && a.dweights == b.dweights;
}

}  // namespace

TEST_CASE_TEMPLATE("GPU products of experts equal the CPU's, in any number of blocks and lanes", S, float, Bf16, Fp16) {
  const Problem<S> problem({0, 5, 5, 22, 31}, 37, 13, 19);
  const Products<S> own = problem.on_lanes(2, 64);
  problem.check(own);
  CHECK(same_products(problem.on_lanes(5, 8), own));
  CHECK(same_products(problem.on_lanes(1, 1), own));
}

TEST_CASE("a GPU's product of one expert needs no bounds, and may give fp32 of 16 bits") {
  const std::vector<Bf16> x = stored<Bf16>(random_values(9 * 11, 1)), weight = stored<Bf16>(random_values(6 * 11, 2));
  Values scores(9 * 6), expected(9 * 6);
  run_on_host(
      simt::ExpertRowProduct<float, Bf16, Bf16, simt::ExpertForm::kForward>{
          scores.data(), x.data(), weight.data(), {.rows = 9}, 6, 11},
      kBlocks, 16);
  linear_forward(expected.data(), widened_all(x).data(), widened_all(weight).data(), {9, 6, 11});
  CHECK(relative_difference(scores, expected) < kFloatTolerance);
}

TEST_CASE_TEMPLATE("products of experts on tensor cores equal the CPU's, in any number of blocks and order of warps", S,
                   Bf16, Fp16) {
  for (const auto& [out, in] : {std::pair{72, 136}, std::pair{200, 24}}) {
    const Problem<S> problem({0, 130, 130, 137, 260}, 300, out, in);
    const Products<S> own = problem.on_warps(3, WarpOrder::kAscending);
    problem.check(own);
    CHECK(same_products(problem.on_warps(7, WarpOrder::kDescending), own));
  }
}

}  // namespace plumb::test
