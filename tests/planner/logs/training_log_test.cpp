#include "planner/logs/training_log.h"

#include <cmath>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

// These lines have the form in which both programs print them.
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

/// Returns the seconds of a log's last step, of 32 samples with 1000 tokens each on 8 devices.
double last_step(const std::string& text, const char* framework) {
  TrainingLog log = parse_training_log(text, "x.log");
  CHECK(log.framework == framework);
  log.values = {log.values.back()};
  return step_seconds(log, {.samples = 32, .tokens = 32000, .devices = 8}).value;
}

}  // namespace

TEST_CASE("Megatron's steps are milliseconds, its memory the largest of all ranks, and the first step warms up") {
  const TrainingLog log = parse_training_log(kMegatron, "m.log");
  CHECK(log.framework == "Megatron-LM");
  CHECK(log.unit == LogUnit::kSeconds);
  CHECK(log.values == std::vector<double>{1.0, 1.02, 1.04});
  CHECK(log.reserved_bytes == std::int64_t{30720} << 20);
  const MedianEstimate step = step_seconds(log, {});
  CHECK(step.value == doctest::Approx(1.02));
  CHECK(step.observations == 3);
  CHECK(*step.standard_error == doctest::Approx(1.2533 * 0.02 / std::sqrt(3.0)));
}

TEST_CASE("torchtitan's tokens a second and device become steps by the tokens of one") {
  const TrainingLog log = parse_training_log(kTorchtitan, "t.log");
  CHECK(log.framework == "torchtitan");
  CHECK(log.unit == LogUnit::kTokensPerSecondOfDevice);
  CHECK(log.values == std::vector<double>{10000, 12500});
  CHECK(*log.reserved_bytes == static_cast<std::int64_t>(66.5 * (1 << 30)));
  // 80000 tokens on 4 devices take 2 s and 1.6 s.
  CHECK(step_seconds(log, {.tokens = 80000, .devices = 4}).value == doctest::Approx(1.8));
}

TEST_CASE("a log that prints its batch says how many samples a step has") {
  CHECK(parse_training_log(" iteration 2/ 9 | consumed samples: 128 | elapsed time per iteration (ms): 1000.0 | global "
                           "batch size:    64 | lm loss: 8 |\n",
                           "m.log")
            .global_batch == 64);
  CHECK_FALSE(parse_training_log(kMegatron, "m.log").global_batch);
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

TEST_CASE("steps as other frameworks print them") {
  const auto seconds = [](double value) { return doctest::Approx(value).epsilon(1e-9); };
  CHECK(last_step("[default7]: iteration    12695/  115311 | consumed samples:      9841584 | consumed tokens:  "
                  "20155564032 | elapsed time per iteration (s): 105.22 | learning rate: 5.969E-05 |\n",
                  "Megatron-DeepSpeed") == seconds(105.22));
  // Megatron-DeepSpeed also prints the line of the engine's timer.
  CHECK(last_step("[INFO] [timer.py:260:stop] epoch=0/micro_step=199/global_step=199, "
                  "RunningAvgSamplesPerSec=58.7, CurrSamplesPerSec=61.3, MemAllocated=6.01GB, MaxMemAllocated=19.52GB\n"
                  "iteration 199/ 317892 | consumed samples: 152832 | elapsed time per iteration (ms): 14287.5 |\n",
                  "Megatron-LM") == seconds(14.2875));
  CHECK(last_step("[timer.py:258:stop] epoch=0/micro_step=20/global_step=20, RunningAvgSamplesPerSec=17.12, "
                  "CurrSamplesPerSec=16.0, MemAllocated=0.02GB, MaxMemAllocated=0.97GB\n",
                  "DeepSpeed") == seconds(2));
  CHECK(
      last_step("[timer.py:207:stop] 0/2498, RunningAvgSamplesPerSec=3.06, CurrSamplesPerSec=8, MemAllocated=0.02GB\n",
                "DeepSpeed") == seconds(4));
  CHECK(last_step("[timer.py:189:stop] 0/50, SamplesPerSec=64, MemAllocated=0.26GB, MaxMemAllocated=9.02GB\n",
                  "DeepSpeed") == seconds(0.5));
  CHECK(last_step("steps: 100 loss: 0.0585 iter time (s): 0.186 samples/sec: 53.694 \n", "DeepSpeed") ==
        seconds(0.186));
  CHECK(last_step("completed step: 9, seconds: 1.341, TFLOP/s/device: 257.9, Tokens/s/device: 36653.2, loss: 0.0\n",
                  "MaxText") == seconds(1.341));
  CHECK(last_step("[batch=5/100]:\n\t Train throughput/batches_per_sec: 0.25\n\t Train loss: 5\n", "Composer") ==
        seconds(4));
  CHECK(last_step("[step=10/739328]\n    throughput/device/tokens_per_second=16,000\n", "OLMo") == seconds(0.25));
  CHECK(last_step("Step 1 | loss:1.5 lr:2e-05 tokens_per_second_per_gpu:2000 peak_memory_reserved:5.5\n",
                  "torchtune") == seconds(2));
  CHECK(last_step("iter 1630: loss 4.0, time 600.00ms\niter 1631: loss 4.0863, time 561.94ms\n", "nanoGPT") ==
        seconds(0.56194));
  const char* const kTrainer = "the Hugging Face Trainer";
  CHECK(last_step("{'train_runtime': 99.1, 'train_samples_per_second': 8, 'train_steps_per_second': 0.25}\n",
                  kTrainer) == seconds(4));
  CHECK(last_step("***** train metrics *****\n  train_steps_per_second   =      0.125\n", kTrainer) == seconds(8));
}

TEST_CASE("nanotron's numbers are written short, in thousands and millions") {
  const TrainingLog log = parse_training_log(
      "[INFO|DP=0|PP=0|TP=0]: iteration: 991 / 1000 | consumed_tokens: 634K | elapsed_time_per_iteration_ms: 11.5K | "
      "tokens_per_sec: 22.8K | lm_loss: 2.38 | cuda_memory_allocated: 90.9M | cuda_max_memory_reserved: 570M\n"
      "[INFO|DP=0|PP=0|TP=0]: iteration: 992 / 1000 | consumed_tokens: 635K | elapsed_time_per_iteration_ms: 268 | "
      "tokens_per_sec: 2.39K\n",
      "n.log");
  CHECK(log.framework == "nanotron");
  CHECK(log.values.size() == 1);
  CHECK(log.values[0] == doctest::Approx(0.268));
  CHECK(log.reserved_bytes == 570'000'000);
}

TEST_CASE("steps of NeMo's two forms of log") {
  const TrainingLog log = parse_training_log(
      "Epoch 0: : 100%| 50/50 [16:26<00:00, global_step=49.00, train_step_timing in s=12.80]\n"
      "Training epoch 0, iteration 45/99 | global_step: 45 | train_step_timing in s: 3.071 | consumed_samples: 5888\n"
      "Training epoch 0, iteration 46/99 | global_step: 46 | train_step_timing in s: 3.069 | consumed_samples: 6016\n",
      "nemo.log");
  CHECK(log.values == std::vector<double>{3.071, 3.069});
}

TEST_CASE("of a long log a sample of the steps is kept, and all of them are counted") {
  TrainingLogReader reader("long.log");
  constexpr std::size_t kSteps = 3 * SampledValues::kMost;
  for (std::size_t step = 0; step < kSteps; ++step)
    reader.take("consumed samples: 64 | elapsed time per iteration (ms): 1000.0 |");
  const TrainingLog log = reader.finish();
  CHECK(log.values.size() <= SampledValues::kMost);
  CHECK(log.steps == kSteps - 1);
  const MedianEstimate step = step_seconds(log, {});
  CHECK(step.observations == kSteps - 1);
  CHECK(step.value == doctest::Approx(1.0));
}

}  // namespace plumb::test
