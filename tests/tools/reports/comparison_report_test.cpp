#include "tools/reports/comparison_report.h"

#include <doctest/doctest.h>

#include "tools/reports/table.h"

namespace plumb::test {
namespace {

SimTime ms(double of) {
  return to_sim_time(Seconds{of * 1e-3});
}

Comparison comparison_of_two_stages() {
  return {.steps = 3,
          .step = {.predicted = ms(80), .measured = ms(100)},
          .ops = {{.op = Op::kBackward, .stage = 1, .count = 4, .mean = {.predicted = ms(8), .measured = ms(10)}}},
          .ranks = {{.predicted_peak_bytes = 1 << 20}},
          .causes = {{.kind = ErrorCause::Kind::kOperation,
                      .op = Op::kBackward,
                      .stage = 1,
                      .time = {.predicted = ms(32), .measured = ms(40)}}}};
}

}  // namespace

TEST_CASE("the tables have the step, each operation, each rank and each cause") {
  const Timeline timeline{.title = "1f1b p=2 m=4", .stage_names = {"layers 0-7", "layers 8-15"}};
  const std::string text = to_text(comparison_of_two_stages(), timeline);
  for (const char* part : {"1f1b p=2 m=4", "B, layers 8-15", "-20.0 %", "along the critical path", "1.00 MiB"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part);
}

TEST_CASE("a comparison folds at the terminal's width") {
  fold_tables_at(60);
  const std::string text = to_text(comparison_of_two_stages(), Timeline{.title = "1f1b"});
  fold_tables_at(1000);
  for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    CHECK(end - at <= 60);
  }
}

}  // namespace plumb::test
