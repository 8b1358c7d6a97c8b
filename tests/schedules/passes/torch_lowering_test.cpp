#include "schedules/passes/torch_lowering.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "schedules/rules/validate.h"
#include "tests/schedules/text_rows.h"

namespace plumb::test {
TEST_CASE(
    "parameters are gathered ahead, messages stand where the ranks' turns meet them, gradients are reduced last") {
  CHECK(lower_as_torch(parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1")).ranks ==
        rows("0UNSHARD 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 0REDUCE_GRAD 0RESHARD\n"
             "1UNSHARD 1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1 1REDUCE_GRAD 1RESHARD"));
}

TEST_CASE("deferred receives stand right ahead of their consumer") {
  CHECK(lower_as_torch(parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1"), {.deferred_receives = true}).ranks[1] ==
        rows("-\n1UNSHARD 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1 1REDUCE_GRAD 1RESHARD")[1]);
}

TEST_CASE("no more stages are gathered than allowed") {
  const Schedule lowered = lower_as_torch(make_schedule("bfs", {.ranks = 2, .microbatches = 2, .chunks = 5}));
  for (const auto& actions : lowered.ranks) {
    int gathered = 0;
    for (const Action& action : actions) {
      gathered += int(action.op == Op::kUnshard) - int(action.op == Op::kReshard);
      CHECK(gathered <= 3);
    }
    CHECK(gathered == 0);
  }
}

TEST_CASE("every schedule of one lane, lowered so, is valid with front-loaded and with deferred receives") {
  for (const CatalogueEntry& entry : catalogue()) {
    for (const int microbatches : {4, 8}) {
      const Schedule order =
          make_schedule(entry.name, {.ranks = 2, .microbatches = microbatches, .chunks = entry.chunks});
      const bool other_ops = entry.name == "bpipe" || is_asynchronous(order);
      const bool copies = order.stages.back().lane > 0;
      if (other_ops || copies || !entry.unpriced.empty()) continue;
      CAPTURE(entry.name);
      CHECK(validate(lower_as_torch(order)).empty());
      CHECK(validate(lower_as_torch(order, {.deferred_receives = true})).empty());
    }
  }
}

TEST_CASE("what is lowered already, or waits for ever, is refused") {
  CHECK_THROWS_AS(lower_as_torch(lower(parse_schedule("0F0 0B0"))), ScheduleError);
  CHECK_THROWS_AS(lower_as_torch(parse_schedule("0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1")), ScheduleError);
}

}  // namespace plumb::test
