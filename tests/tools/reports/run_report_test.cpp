#include "tools/reports/run_report.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("a run's first line has the step in the middle and the first and the last loss") {
  const RunResult result{.losses = {5.5, 5.25, 5.0}, .step_seconds = {Seconds{3}, Seconds{1}, Seconds{2}}};
  const std::string text = run_text("gpt, PP2", "the cpu", result, nullptr);
  CHECK(text.starts_with("gpt, PP2: 3 steps on the cpu, median 2.00 s a step, loss 5.5000 to 5.0000\n"));
}

TEST_CASE("steps after a checkpoint are counted from its first, beside those of one rank") {
  const RunResult resumed{.first_step = 2, .losses = {5.0}, .step_seconds = {Seconds{1}}};
  const RunResult alone{.losses = {5.5, 5.25, 5.125}};
  const std::string text = run_text("gpt", "the cpu", resumed, &alone);
  CHECK(text.ends_with("   3  5.0000       5.1250     1.00 s\n"));
}

TEST_CASE("a run that ended before its first step is a line") {
  CHECK(run_text("gpt", "the cpu", {}, nullptr) == "gpt: 0 steps on the cpu\n");
  CHECK(clocked_text("gpt", "2 threads", {}, Seconds{1}) == "gpt: 0 steps by the clock on 2 threads\n");
}

TEST_CASE("a prediction below the measured median has a negative error") {
  CHECK(
      clocked_text("1f1b", "2 threads", {Seconds{2}}, Seconds{1})
          .starts_with("1f1b: 1 steps by the clock on 2 threads, median 2.00 s a step, 1.00 s predicted (-50.0 %)\n"));
}

}  // namespace plumb::test
