// ZeRO 2 and 3 layer by layer on a device, beside the cpu backend.

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include "executor/program/device/call_clocks.h"
#include "executor/training/run.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {
namespace {

RunSpec layerwise(const std::vector<Layer>& model, const std::string& name, int ranks, int replicas, int zero) {
  const Schedule order = make_schedule(name, {.ranks = ranks, .microbatches = 4});
  RunSpec spec = spec_of_lowered(model, lower(order, {.data = {.enabled = true, .zero = zero}}), replicas);
  spec.zero = zero;
  spec.layerwise = true;
  spec.steps = 2;
  return spec;
}

/// Counts for F on rank 0 how often a gather, enqueued before a layer's compute, need not end before it.
class WatchedMachine : public HostMachine {
 public:
  void prepare(std::span<const DeviceLane> lanes, std::size_t calls) override {
    HostMachine::prepare(lanes, calls);
    clocks_.emplace(lanes.back().rank + 1);
  }
  void begin_call(std::size_t index, int rank, DeviceStream stream, const char* name) override {
    note_newest();
    HostMachine::begin_call(index, rank, stream, name);
    clocks_->begin(rank, stream);
    const std::string of = name;
    if (of != name_) gathers_.clear();
    name_ = of;
    is_compute_ = of.starts_with("0F") && rank == 0 && stream == DeviceStream::kCompute;
    if (of.starts_with("0F") && rank == 0 && stream == DeviceStream::kReduce)
      gathers_.push_back(static_cast<std::int32_t>(index));
  }
  void wait_for(std::size_t earlier) override {
    HostMachine::wait_for(earlier);
    clocks_->wait({.call = static_cast<std::int32_t>(earlier)});
  }
  std::vector<CallTimes> finish() override {
    note_newest();
    is_compute_ = false;
    std::vector<CallTimes> times = HostMachine::finish();
    clocks_.emplace(2);
    gathers_.clear();
    return times;
  }
  int beside() const { return beside_; }

 private:
  void note_newest() {
    if (!is_compute_) return;
    for (const std::int32_t gather : gathers_) beside_ += clocks_->precedes_newest(gather) ? 0 : 1;
  }

  std::optional<CallClocks> clocks_;
  std::string name_;
  std::vector<std::int32_t> gathers_;
  bool is_compute_ = false;
  int beside_ = 0;
};

std::int64_t arena_bytes(RunSpec spec, bool is_layerwise) {
  spec.layerwise = is_layerwise;
  HostMachine machine(spec.half);
  run_device(spec, machine);
  return machine.allocated();
}

}  // namespace

TEST_CASE("a device reduces and gathers layer by layer as the CPU does, in every order that streams allow") {
  for (const int zero : {2, 3})
    for (const auto& [name, ranks, replicas] :
         std::vector<std::tuple<std::string, int, int>>{{"1f1b", 2, 2}, {"zb-h1", 2, 3}, {"interleaved", 1, 2}}) {
      CAPTURE(name);
      CAPTURE(zero);
      RunSpec spec = layerwise(untied_gpt_model(), name, ranks, replicas, zero);
      if (zero == 3) spec.shard_by = replicas == 3 ? ShardBy::kLayer : ShardBy::kElement;
      check_shares_beside_cpu(spec);
    }
}

TEST_CASE("in 16 bits, with tensor groups, clipped gradients, tied tables and recomputation too") {
  RunSpec spec = layerwise(tied_llama_model(), "1f1b", 2, 2, 3);
  spec.half = HalfFormat::kBf16;
  check_shares_beside_cpu(spec);
  spec = layerwise(gpt_model(), "1f1b", 2, 2, 3);
  spec.clip_norm = 0.5;
  spec.grid.tensor = 2;
  check_shares_beside_cpu(spec);
  for (const Recompute what : {Recompute::kStage, Recompute::kFull, Recompute::kSelective}) {
    CAPTURE(static_cast<int>(what));
    spec = layerwise(untied_gpt_model(), "1f1b", 2, 2, 3);
    spec.rebuild = what;
    spec.rebuild_which = RebuildWhich::kAll;
    check_shares_beside_cpu(spec);
  }
}

TEST_CASE("layer by layer two layers' weights and one's gradients stand, not the stage's") {
  const RunSpec spec = layerwise(untied_gpt_model(12), "1f1b", 1, 2, 3);
  CHECK(arena_bytes(spec, true) < arena_bytes(spec, false) * 7 / 10);
}

TEST_CASE("the weights of the next layer are gathered while one computes, unless it is computed again") {
  RunSpec spec = layerwise(untied_gpt_model(), "1f1b", 1, 2, 3);
  WatchedMachine kept;
  run_device(spec, kept);
  CHECK(kept.beside() > 0);
  spec.rebuild = Recompute::kStage;
  spec.rebuild_which = RebuildWhich::kAll;
  WatchedMachine again;
  run_device(spec, again);
  CHECK(again.beside() == 0);
}

}  // namespace plumb::test
