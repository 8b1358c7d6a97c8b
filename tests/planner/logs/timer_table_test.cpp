#include "planner/logs/timer_table.h"

#include <string>

#include <doctest/doctest.h>

#include "planner/logs/text_lines.h"

namespace plumb::test {
namespace {

std::map<std::string, PrintedTimer> timers_of(std::string_view text) {
  TimerTableReader reader;
  for (const std::string_view line : lines_of(text)) reader.take(line);
  return reader.finish();
}

}  // namespace

TEST_CASE("Megatron's timers have the least and the most of all ranks, and the first print is left out") {
  const auto timers = timers_of(
      "(min, max) time across ranks (ms):\n"
      "    forward-compute ................................: (900.00, 980.00)\n"
      " iteration 1/ 9 | elapsed time per iteration (ms): 5000.0 |\n"
      "(min, max) time across ranks (ms):\n"
      "    forward-compute ................................: (400.11, 480.22)\n"
      "    backward-compute ...............................: (800.00, 801.00)\n"
      " iteration 2/ 9 | elapsed time per iteration (ms): 1500.0 |\n"
      "    forward-compute ................................: (1.00, 2.00)\n");
  REQUIRE(timers.size() == 2);
  CHECK(timers.at("forward-compute").least == std::vector<double>{400.11});
  CHECK(timers.at("forward-compute").most == std::vector<double>{480.22});
  CHECK(timers.at("backward-compute").most == std::vector<double>{801});
}

TEST_CASE("timers that print only the most have it as their least") {
  const auto timers = timers_of(
      "max time across ranks (ms):\n"
      "    optimizer ......................................: 12.50\n");
  CHECK(timers.at("optimizer").least == std::vector<double>{12.5});
  CHECK(timers.at("optimizer").most == std::vector<double>{12.5});
}

TEST_CASE("DeepSpeed's timers stand on one line") {
  const auto timers = timers_of(
      "[2026-01-01 00:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | fwd: 97.07 | bwd_inner: "
      "190.40\n");
  CHECK(timers.at("fwd").most == std::vector<double>{97.07});
  CHECK(timers.at("bwd_inner").most == std::vector<double>{190.4});
}

TEST_CASE("a table of more timers than any trainer has is kept in part") {
  TimerTableReader reader;
  reader.take("(min, max) time across ranks (ms):");
  for (int i = 0; i < 5000; ++i) reader.take("    timer-" + std::to_string(i) + " ....: (1.00, 2.00)");
  CHECK(reader.finish().size() == 1024);
}

}  // namespace plumb::test
