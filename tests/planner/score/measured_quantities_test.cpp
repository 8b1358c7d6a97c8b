#include "planner/score/measured_quantities.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace plumb::test {
namespace {

MeasuredQuantities quantities(const char* row) {
  return measured_quantities(nlohmann::json::parse(row));
}

}  // namespace

TEST_CASE("a step's time is read in seconds, milliseconds, or as derived") {
  CHECK(quantities(R"({"measured": {"step_time_s": 2.5}})").step_time == Seconds{2.5});
  CHECK(quantities(R"({"measured": {"step_time_ms": 250}})").step_time == Seconds{0.25});
  CHECK(quantities(R"({"measured": {"mfu_pct": 40}, "derived": {"step_time_s": 3}})").step_time == Seconds{3});
}

TEST_CASE("a throughput with batch, sequence and devices is a step's time") {
  // 16 sequences of 1000 tokens: 16000 tokens a step.
  CHECK(quantities(R"({"gbs": 16, "model": {"seq": 1000}, "measured": {"tokens_per_s": 8000}})").step_time ==
        Seconds{2});
  CHECK(quantities(R"({"gbs": 16, "gpus": 4, "model": {"seq": 1000}, "measured": {"tokens_per_s_per_gpu": 1000}})")
            .step_time == Seconds{4});
  CHECK(quantities(R"({"gbs": 16, "gpus": 4, "measured": {"samples_per_gpu_s": 2}})").step_time == Seconds{2});
  CHECK(!quantities(R"({"gpus": 4, "measured": {"samples_per_gpu_s": 2}})").step_time);
}

TEST_CASE("nulls, texts and numbers that no run has are as if they were not printed") {
  CHECK(!quantities(R"({"measured": {"step_time_s": null}})").step_time);
  CHECK(!quantities(R"({"measured": {"step_time_s": "fast"}})").step_time);
  CHECK(!quantities(R"({"measured": {"step_time_s": -1}})").step_time);
  CHECK(!quantities(R"({"measured": null})").step_time);
  CHECK(!quantities("{}").peak_memory_bytes);
}

TEST_CASE("FLOP/s are a rate of the model's only where a mapping says so") {
  CHECK(!quantities(R"({"measured": {"tflops_per_gpu": 400}})").flops_per_device_second);
  CHECK(quantities(R"({"flops_count": "model", "measured": {"tflops_per_gpu": 400}})").flops_per_device_second ==
        400e12);
  CHECK(!quantities(R"({"flops_count": "model", "measured": {"mfu_pct": 50}})").flops_per_device_second);
  CHECK(quantities(R"({"flops_count": "model", "mfu_peak_tflops": 312, "measured": {"mfu_pct": 50}})")
            .flops_per_device_second == doctest::Approx(156e12));
}

TEST_CASE("a source may count attention's causal half, or what is recomputed, otherwise than the model's FLOPs") {
  const auto count = [](const char* text) { return quantities(text).flops_count; };
  CHECK(count(R"({"flops_count": "model", "measured": {"tflops_per_gpu": 400}})") == FlopsCount::kModel);
  CHECK(count(R"({"flops_count": "causal", "measured": {"tflops_per_gpu": 400}})") == FlopsCount::kCausal);
  CHECK(count(R"({"flops_count": "executed", "measured": {"tflops_per_gpu": 400}})") == FlopsCount::kExecuted);
  CHECK(!quantities(R"({"flops_count": "all", "measured": {"tflops_per_gpu": 400}})").flops_per_device_second);
}

TEST_CASE("memory keys carry their unit") {
  CHECK(quantities(R"({"measured": {"peak_mem_gb": 2}})").peak_memory_bytes == 2e9);
  CHECK(quantities(R"({"measured": {"peak_mem_gib": 2}})").peak_memory_bytes == 2147483648.0);
  CHECK(quantities(R"({"measured": {"peak_mem_max_mb": 2, "peak_mem_min_mb": 1}})").least_memory_bytes == 1048576.0);
  CHECK(quantities(R"({"measured": {"peak_mem_allocated_bytes": 17}})").peak_memory_bytes == 17);
  CHECK(quantities(R"({"memory_gb_bytes": 1073741824, "measured": {"peak_mem_gb": 2}})").peak_memory_bytes ==
        2147483648.0);
}

TEST_CASE("memory by rank stands in the ranks' order, and its largest is the peak") {
  const MeasuredQuantities ranks =
      quantities(R"({"measured": {"peak_by_rank_mb": {"0": {"max_allocated_mb": 3}, "1": {"max_allocated_mb": 2}}}})");
  REQUIRE(ranks.memory_by_rank_bytes.size() == 2);
  CHECK(ranks.memory_by_rank_bytes[1] == 2 * 1048576.0);
  CHECK(ranks.peak_memory_bytes == 3 * 1048576.0);
  CHECK(quantities(R"({"measured": {"peak_by_rank_mb": {"0": 3, "2": 2}}})").memory_by_rank_bytes.empty());
}

TEST_CASE("a mapping says of which rank the memory is") {
  CHECK(measured_quantities({{"memory_of", "last rank"}}).memory_of_last_rank);
  CHECK_FALSE(measured_quantities({{"memory_of", "device"}}).memory_of_last_rank);
}

TEST_CASE("a run that did not fit says so") {
  CHECK(quantities(R"({"measured": {"oom": true}})").out_of_memory);
  CHECK(!quantities(R"({"measured": {"oom": false}})").out_of_memory);
}

}  // namespace plumb::test
