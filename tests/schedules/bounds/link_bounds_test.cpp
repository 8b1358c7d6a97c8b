#include "schedules/bounds/link_bounds.h"

#include <doctest/doctest.h>

#include "schedules/bounds/lower_bound.h"
#include "schedules/forms/text_form.h"
#include "schedules/search/certificate.h"
#include "schedules/synthesis/local_search.h"
#include "tests/schedules/order_questions.h"

namespace plumb::test {

TEST_CASE("a link that each message has for longer than its rank computes sets the pace") {
  // F = I = 1 on two ranks; a message has the link for 5 and arrives 1 later. Activations leave at 1, 6, ... 16, and
  // the last one arrives at 22; F, I there end at 24, its gradient is back at 30, and I ends at 31.
  OrderQuestion question = chain_question(2, 4, {.forward = 1, .input_grad = 1, .hop = 6, .hop_busy = 5});
  question.objective = Objective::kMakespan;
  const LaneTimes lane = lanes_of(question).front();
  const LowerBound forth = link_bound(lane, 0, 1, HopKind::kActivation);
  CHECK(forth.time == 1 + 4 * 5 + 1 + 2 + 6 + 1);
  CHECK(forth.reason == "the link from rank 0 to rank 1");
  CHECK(link_bound(lane, 1, 0, HopKind::kGradient).time == (1 + 6 + 1 + 1) + 4 * 5 + 1 + 1);
  CHECK(best_bound(question).time == 31);
  const Schedule order =
      parse_schedule("0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3");  // rank 0 runs ahead
  CHECK(order_time(order, question) == 31);                                                // the bound is reached
  question.costs.hop_busy = {};  // any number of messages at once
  CHECK(link_bound(lanes_of(question).front(), 0, 1, HopKind::kActivation).time == 0);
  CHECK(order_time(order, question) < 31);
}

TEST_CASE("stages of several chunks share the link between two ranks") {
  OrderQuestion question{.frame = {.microbatches = 3, .stages = loop_placement(2, 4)},
                         .ranks = 2,
                         .costs = equal_costs({.forward = 1, .input_grad = 1, .hop = 4, .hop_busy = 4}, 4)};
  question.objective = Objective::kMakespan;
  const LaneTimes lane = lanes_of(question).front();
  // Two activations of each micro-batch pass from rank 0 to rank 1, and one from rank 1 to rank 0.
  CHECK(link_bound(lane, 0, 1, HopKind::kActivation).terms[1].time == 2 * 3 * 4);
  CHECK(link_bound(lane, 1, 0, HopKind::kActivation).terms[1].time == 3 * 4);
}

TEST_CASE("a certificate of busy links is verified from schedule and costs alone") {
  const OrderQuestion question = chain_question(2, 4, {.forward = 1, .input_grad = 1, .hop = 6, .hop_busy = 5}, 4);
  const FoundSchedule found = search_schedule(question, {.timed_actions = 1e5}).value();
  const std::string text = certificate_text(certificate_of(question, found));
  CHECK(certificate_faults(parse_certificate(text, "proof.json"), found.schedule).empty());
}

}  // namespace plumb::test
