// Replicas on a device: gradients summed over them, ZeRO's shares, beside the cpu backend.

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include "executor/training/device/run_device.h"
#include "executor/training/run.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {
namespace {

RunSpec replicated(const std::vector<Layer>& model, const std::string& name, int ranks, int replicas, int zero = 0) {
  const Schedule order = make_schedule(name, {.ranks = ranks, .microbatches = 4});
  RunSpec spec = spec_of_lowered(model, lower(order, {.data = {.enabled = replicas > 1, .zero = zero}}), replicas);
  spec.zero = zero;
  spec.steps = 2;
  return spec;
}

}  // namespace

TEST_CASE("replicas on a device train as the CPU's, in every order that streams and events allow") {
  for (const auto& [name, ranks, replicas] : std::vector<std::tuple<std::string, int, int>>{
           {"1f1b", 1, 2}, {"1f1b", 2, 2}, {"gpipe", 2, 3}, {"zb-h1", 2, 4}, {"interleaved", 2, 2}, {"zb-v", 2, 2}}) {
    CAPTURE(name);
    CAPTURE(replicas);
    check_shares_beside_cpu(replicated(llama_model(), name, ranks, replicas));
  }
  check_shares_beside_cpu(replicated(untied_gpt_model(), "1f1b", 2, 2));
}

TEST_CASE("a bucket's reduction starts inside the last backward on a device, with the CPU's gradients") {
  for (const char* name : {"1f1b", "zb-h1"})
    for (const int zero : {0, 1}) {
      CAPTURE(name);
      CAPTURE(zero);
      RunSpec spec = replicated(untied_gpt_model(), name, 2, 2);
      spec.schedule = lower(make_schedule(name, {.ranks = 2, .microbatches = 4}),
                            {.data = {.enabled = true, .zero = zero, .buckets = {3, 2}}});
      spec.zero = zero;
      check_shares_beside_cpu(spec);
      bool has_overlapped = false;
      for (unsigned seed = 1; seed <= 10; ++seed) {
        const RunResult result = on_host(spec, seed);
        for (const RankTimeline& rank : result.timelines.front().ranks) {
          SimTime first_reduction = SimTime::max(), last_backward{0};
          for (const Span& span : rank.spans) {
            if (span.action.op == Op::kReduceGrad) first_reduction = std::min(first_reduction, span.start);
            if (gives_weight_gradient(span.action.op)) last_backward = std::max(last_backward, span.end);
          }
          has_overlapped |= first_reduction < last_backward;
        }
      }
      CHECK(has_overlapped);
    }
}

TEST_CASE("a device shards optimizer state, gradients and weights over replicas as the CPU does") {
  for (const int zero : {1, 2, 3})
    for (const auto& [name, ranks, replicas] :
         std::vector<std::tuple<std::string, int, int>>{{"1f1b", 2, 2}, {"zb-h1", 2, 3}, {"interleaved", 2, 2}}) {
      CAPTURE(name);
      CAPTURE(zero);
      RunSpec spec = replicated(untied_gpt_model(), name, ranks, replicas, zero);
      check_shares_beside_cpu(spec);
      spec.shard_by = ShardBy::kLayer;
      check_shares_beside_cpu(spec);
    }
}

TEST_CASE("a tensor group on a device trains as the CPU's: heads, channels and vocabulary divided") {
  for (const auto& [name, ranks, tensor, replicas] : std::vector<std::tuple<std::string, int, int, int>>{
           {"1f1b", 1, 2, 1}, {"1f1b", 2, 2, 1}, {"zb-h1", 2, 2, 1}, {"1f1b", 2, 2, 2}}) {
    CAPTURE(name);
    CAPTURE(ranks);
    for (const int zero : {0, 1}) {
      if (zero > 0 && replicas == 1) continue;
      RunSpec spec = replicated(untied_gpt_model(), name, ranks, replicas, zero);
      spec.grid.tensor = tensor;
      check_shares_beside_cpu(spec);
    }
  }
  std::vector<Layer> model = llama_model();
  std::get<EmbeddingLayer>(model.front()).vocab = std::get<HeadLayer>(model.back()).vocab = 33;  // padded
  RunSpec spec = replicated(model, "1f1b", 2, 1);
  spec.grid.tensor = 2;
  check_shares_beside_cpu(spec);
}

}  // namespace plumb::test
