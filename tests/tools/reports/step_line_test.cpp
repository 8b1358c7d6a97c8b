#include "tools/reports/step_line.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("a step's line has what is known, and the memory beside its limit") {
  constexpr double kGibibyte = 1 << 30;
  StepLine line{.time = "2.00 s a step", .bubble_ratio = 0.25};
  CHECK(to_text(line) == "2.00 s a step, bubble 25.0 %");
  line.samples_per_s = 16;
  CHECK(to_text(line) == "2.00 s a step, 16 samples/s, bubble 25.0 %");
  line.tokens_per_s = 4096;
  line.mfu_ratio = 0.5;
  line.peak_bytes = 60 * kGibibyte;
  line.limit_bytes = 80 * kGibibyte;
  CHECK(to_text(line) == "2.00 s a step, 4096 tokens/s, MFU 50.0 %, bubble 25.0 %, 60.0 of 80.0 GiB (25 % free)");
  line.peak_bytes = 90 * kGibibyte;
  CHECK(to_text(line).ends_with("90.0 of 80.0 GiB (too large by 10.0 GiB)"));
}

}  // namespace plumb::test
