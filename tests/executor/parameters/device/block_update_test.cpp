// Optimizers whose state is in the host's memory: the bits of a run that has it on the device, through any window.

#include <doctest/doctest.h>

#include <vector>

#include "executor/training/run.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {
namespace {

constexpr std::int64_t kSmallWindow = 3000;

std::vector<OptimizerSettings> all_optimizers() {
  return {smooth_adamw(), AdamW8Bit{.adamw = smooth_adamw()}, Sgd{.learning_rate = 0.05F}, Lion{}, Adafactor{}};
}

RunSpec spec_with(const OptimizerSettings& optimizer, std::optional<HalfFormat> half, const char* schedule = "1f1b") {
  RunSpec spec = spec_of(tied_llama_model(), make_schedule(schedule, {.ranks = 2, .microbatches = 4}));
  spec.steps = 3;
  spec.optimizer = optimizer;
  spec.half = half;
  return spec;
}

RunResult offloaded(RunSpec spec, std::int64_t window, std::optional<unsigned> seed = {}) {
  spec.offload_optimizer = true;
  HostMachine machine(spec.half, seed);
  return run_device(spec, machine, {.capture_weights = true, .update_window_bytes = window});
}

/// Counts copies beside which the next call on the compute stream goes on.
class CountingMachine : public HostMachine {
 public:
  void begin_call(std::size_t index, int rank, DeviceStream stream, const char* name) override {
    count();
    HostMachine::begin_call(index, rank, stream, name);
    before_ = stream_ == DeviceStream::kCopy && rank == rank_ ? index_ : kNone;
    index_ = index;
    rank_ = rank;
    stream_ = stream;
    waits_ = false;
  }
  void wait_for(std::size_t earlier) override {
    HostMachine::wait_for(earlier);
    waits_ |= earlier == before_;
  }
  std::vector<CallTimes> finish() override {
    count();
    before_ = kNone;
    return HostMachine::finish();
  }
  int beside() const { return beside_; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  void count() { beside_ += before_ != kNone && stream_ == DeviceStream::kCompute && !waits_ ? 1 : 0; }

  std::size_t index_ = kNone, before_ = kNone;
  int rank_ = -1, beside_ = 0;
  DeviceStream stream_ = DeviceStream::kCompute;
  bool waits_ = false;
};

}  // namespace

TEST_CASE("the next part comes, and the last one goes back, beside an update") {
  RunSpec spec = spec_with(smooth_adamw(), std::nullopt);
  spec.offload_optimizer = true;
  const auto beside = [&](std::int64_t window) {
    CountingMachine machine;
    run_device(spec, machine, {.update_window_bytes = window});
    return machine.beside();
  };
  CHECK(beside(kSmallWindow) > 50);
  CHECK(beside(kSmallWindow) > beside(4 * kSmallWindow));
}

TEST_CASE("an offloaded state gives the bits of one on the device, in parts or as one, and as much on the host") {
  for (const OptimizerSettings& optimizer : all_optimizers())
    for (const std::optional<HalfFormat> half :
         {std::optional<HalfFormat>(), std::optional(HalfFormat::kBf16), std::optional(HalfFormat::kFp16)}) {
      INFO("optimizer " << optimizer.index() << ", half " << half.has_value());
      const RunSpec spec = spec_with(optimizer, half);
      const RunResult there = on_host(spec), away = offloaded(spec, kSmallWindow, 5);
      CHECK(away.weights == there.weights);
      CHECK(away.losses == there.losses);
      CHECK(away.parameter_bytes == there.parameter_bytes);
      CHECK(there.peak_host_bytes == std::vector<std::int64_t>(2, 0));
      for (std::size_t rank = 0; rank < 2; ++rank)
        CHECK(away.peak_host_bytes[rank] >= away.parameter_bytes[rank].optimizer);
      CHECK(offloaded(spec, kUpdateWindowBytes).weights == there.weights);
    }
}

TEST_CASE("an offloaded state of shares, tensor ranks and schedules of several steps") {
  for (const int zero : {0, 1, 2, 3}) {
    INFO("ZeRO " << zero);
    const Schedule order = make_schedule("1f1b", {.ranks = 2, .microbatches = 2});
    RunSpec spec = spec_of_lowered(tied_llama_model(), lower(order, {.data = {.enabled = true, .zero = zero}}), 2);
    spec.zero = zero;
    spec.steps = 3;
    spec.optimizer = smooth_adamw();
    spec.half = HalfFormat::kBf16;
    spec.clip_norm = 0.5;
    CHECK(offloaded(spec, kSmallWindow, 3).weights == on_host(spec).weights);
  }
  RunSpec tensor = spec_with(smooth_adamw(), HalfFormat::kFp16);
  tensor.grid.tensor = 2;
  CHECK(offloaded(tensor, kSmallWindow).weights == on_host(tensor).weights);
  for (const std::optional<HalfFormat> half : {std::optional<HalfFormat>(), std::optional(HalfFormat::kBf16)}) {
    RunSpec several = spec_with(smooth_adamw(), half, "pipedream");
    std::get<HeadLayer>(several.stage_layers.back().back()).tied = false;
    CHECK(offloaded(several, kSmallWindow).weights == on_host(several).weights);
  }
}

TEST_CASE("a device with an offloaded state has the cpu backend's losses") {
  RunSpec spec = spec_with(smooth_adamw(), std::nullopt);
  spec.offload_optimizer = true;
  check_losses(offloaded(spec, kSmallWindow), run(spec), 1e-4);
}

TEST_CASE("what an offloaded state takes on the device is the window and no more") {
  RunSpec spec = spec_with(smooth_adamw(), std::nullopt);
  HostMachine there;
  const RunResult whole = run_device(spec, there);
  spec.offload_optimizer = true;
  HostMachine away;
  const RunResult offloaded = run_device(spec, away, {.update_window_bytes = kSmallWindow});
  CHECK(away.allocated() < there.allocated());
  std::int64_t peaks = 0;
  for (const std::int64_t peak : offloaded.peak_memory_bytes) peaks += peak;
  CHECK(peaks == away.allocated());
}

}  // namespace plumb::test
