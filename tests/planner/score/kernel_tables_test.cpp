#include "planner/score/kernel_tables.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace plumb::test {
namespace {

using nlohmann::json;

std::vector<KernelSample> samples(const char* rows) {
  return kernel_samples_of(json::parse(rows).get<std::vector<json>>(), "B200");
}

}  // namespace

TEST_CASE("a product's rate is its time, and its layout its form") {
  const auto forms = samples(R"([
    {"hardware": "B200-SXM", "op": "matmul", "m": 4, "n": 8, "k": 16, "layout": "TN", "measured": {"tflops": 1e-9}},
    {"hardware": "B200-SXM", "op": "matmul", "m": 4, "n": 8, "k": 16, "layout": "NN", "measured": {"tflops": 2e-9}},
    {"hardware": "A100", "op": "matmul", "m": 4, "n": 8, "k": 16, "layout": "NT", "measured": {"tflops": 2e-9}}])");
  REQUIRE(forms.size() == 2);
  CHECK(forms[0].kernel == "gemm");
  CHECK(forms[0].shape == std::vector<std::int64_t>{4, 8, 16, 1, 0});
  CHECK(forms[0].median.count() == doctest::Approx(1.024));  // 2 * 4 * 8 * 16 FLOPs at 1000 a second
  CHECK(forms[1].shape.back() == 1);
}

TEST_CASE("of two results' widths the fp32 one counts") {
  const auto one = samples(R"([
    {"hardware": "B200", "op": "matmul", "m": 4, "n": 8, "k": 16, "layout": "NT", "out_dtype": "bf16",
     "measured": {"tflops": 2e-9}},
    {"hardware": "B200", "op": "matmul", "m": 4, "n": 8, "k": 16, "layout": "NT", "out_dtype": "fp32",
     "measured": {"tflops": 1e-9}}])");
  REQUIRE(one.size() == 1);
  CHECK(one[0].median.count() == doctest::Approx(1.024));
}

TEST_CASE("grouped products give rows an expert, and their gradients the shapes of gradients") {
  const auto grouped = samples(R"([
    {"hardware": "B200", "op": "group_matmul", "key": "ng=3, M=5, N=7, K=11, dtype=bf16, stage=fwd",
     "measured": {"tflops": 1}},
    {"hardware": "B200", "op": "group_matmul", "key": "ng=3, M=5, N=7, K=11, dtype=bf16, stage=bwd_grad_act",
     "measured": {"tflops": 1}},
    {"hardware": "B200", "op": "group_matmul", "key": "ng=3, M=5, N=7, K=11, dtype=bf16, stage=bwd_grad_w",
     "measured": {"tflops": 1}}])");
  REQUIRE(grouped.size() == 3);
  CHECK(grouped[0].shape == std::vector<std::int64_t>{5, 7, 11, 3, 0});
  CHECK(grouped[1].shape == std::vector<std::int64_t>{5, 11, 7, 3, 1});
  CHECK(grouped[2].shape == std::vector<std::int64_t>{7, 11, 5, 3, 2});
}

TEST_CASE("rows that are no products, or lack a size or a rate, are left out") {
  CHECK(samples(R"([
    {"hardware": "B200", "op": "sdp_fwd", "key": "batch=1", "measured": {"tflops": 1}},
    {"hardware": "B200", "op": "matmul", "m": null, "n": 8, "k": 16, "layout": "TN", "measured": {"tflops": 1}},
    {"hardware": "B200", "op": "matmul", "m": 4, "n": 8, "k": 16, "layout": "TN", "measured": {"tflops": 0}},
    {"hardware": "B200", "op": "matmul", "m": 4, "n": 8, "k": 16, "layout": "XY", "measured": {"tflops": 1}},
    {"hardware": "B200", "op": "group_matmul", "key": "ng=3, M=5, stage=fwd", "measured": {"tflops": 1}}])")
            .empty());
}

}  // namespace plumb::test
