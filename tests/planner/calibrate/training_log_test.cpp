#include "planner/calibrate/training_log.h"

#include <cmath>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/refusal.h"

namespace plumb {
namespace {

// Lines in the form in which both programs print them.
const char* const kMegatron =
    "using world size: 8\n"
    " iteration        1/      20 | consumed samples:           64 | elapsed time per iteration (ms): 9000.0 | lm "
    "loss: 9 |\n"
    "[Rank 0] (after 1 iterations) memory (MB) | allocated: 9000.5 | max allocated: 20000.0 | reserved: 20480.0 | max "
    "reserved: 20480.0\n"
    "[Rank 7] (after 1 iterations) memory (MB) | allocated: 9000.5 | max allocated: 30000.0 | reserved: 30720.0 | max "
    "reserved: 30720.0\n"
    " iteration        2/      20 | consumed samples:          128 | elapsed time per iteration (ms): 1000.0 | lm "
    "loss: 8 |\n"
    " iteration        3/      20 | consumed samples:          192 | elapsed time per iteration (ms): 1020.0 | lm "
    "loss: 7 |\n"
    " iteration        4/      20 | consumed samples:          256 | elapsed time per iteration (ms): 1040.0 | lm "
    "loss: 6 |\n";
const char* const kTorchtitan =
    "[titan] 2026-02-24 19:46:15,000 - root - INFO - step:  1  loss:  8.2  memory: 50.25GiB(28.5%)  tps: 100  mfu: 1%\n"
    "[titan] 2026-02-24 19:46:17,508 - root - INFO - step:  2  loss:  7.6  memory: 66.50GiB(37.5%)  tps: 10,000  mfu: "
    "14%\n"
    "[titan] 2026-02-24 19:46:19,145 - root - INFO - step:  3  loss:  7.1  memory: 66.50GiB(37.5%)  tps: 12,500  mfu: "
    "14%\n";

}  // namespace

TEST_CASE("Megatron's steps are milliseconds, its memory the largest of all ranks, and the first step warms up") {
  const TrainingLog log = parse_training_log(kMegatron, "m.log");
  CHECK(log.stack == TrainingLog::Stack::kMegatron);
  CHECK(log.step_seconds == std::vector<double>{1.0, 1.02, 1.04});
  CHECK(log.reserved_bytes == std::int64_t{30720} << 20);
  const MedianEstimate step = step_seconds(log, 1, 1);
  CHECK(step.value == doctest::Approx(1.02));
  CHECK(step.observations == 3);
  CHECK(*step.standard_error == doctest::Approx(1.2533 * 0.02 / std::sqrt(3.0)));
}

TEST_CASE("torchtitan's tokens a second and device become steps by the tokens of one") {
  const TrainingLog log = parse_training_log(kTorchtitan, "t.log");
  CHECK(log.stack == TrainingLog::Stack::kTorchtitan);
  CHECK(log.tokens_per_second == std::vector<double>{10000, 12500});
  CHECK(*log.reserved_bytes == static_cast<std::int64_t>(66.5 * (1 << 30)));
  // 80000 tokens on 4 devices: 2 s and 1.6 s.
  CHECK(step_seconds(log, 80000, 4).value == doctest::Approx(1.8));
}

TEST_CASE("one observation has no standard error, and none has no value") {
  CHECK_FALSE(median_of({3}).standard_error);
  CHECK(median_of({3}).value == 3);
  CHECK(median_of({}).observations == 0);
  CHECK(median_of({1, 2, 30, 4}).value == 3);
}

TEST_CASE("a training log is known by its lines, and refused with line and remedy") {
  CHECK(is_training_log(kMegatron));
  CHECK(is_training_log(kTorchtitan));
  CHECK_FALSE(is_training_log("step: 1"));
  const std::string cut = std::string(kMegatron).substr(0, std::string(kMegatron).rfind("elapsed"));
  check_refused<SpecError>([&] { parse_training_log(cut, "m.log"); }, "m.log:7", "cut");
  std::string zero = kTorchtitan;
  zero.replace(zero.find("12,500"), 6, "0");
  check_refused<SpecError>([&] { parse_training_log(zero, "t.log"); }, "t.log:3", "drop the step");
  check_refused<SpecError>([] { parse_training_log("elapsed time per iteration (ms):", "m.log"); }, "m.log:1",
                           "no step");
}

TEST_CASE("steps of NeMo's two forms of log") {
  const TrainingLog log = parse_training_log(
      "Epoch 0: : 100%| 50/50 [16:26<00:00, global_step=49.00, train_step_timing in s=12.80]\n"
      "Training epoch 0, iteration 45/99 | global_step: 45 | train_step_timing in s: 3.071 | consumed_samples: 5888\n"
      "Training epoch 0, iteration 46/99 | global_step: 46 | train_step_timing in s: 3.069 | consumed_samples: 6016\n",
      "nemo.log");
  CHECK(log.step_seconds == std::vector<double>{3.071, 3.069});
}

}  // namespace plumb
