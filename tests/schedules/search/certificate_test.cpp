#include "schedules/search/certificate.h"

#include <doctest/doctest.h>

#include "schedules/bounds/rank_alone.h"
#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "tests/schedules/order_questions.h"

namespace plumb::test {
namespace {

OrderQuestion asked() {
  return chain_question(4, 6, {.forward = 67, .input_grad = 81, .weight_grad = 125, .hop = 20}, 4);
}

}  // namespace

TEST_CASE("a certificate is read as it was written, and holds for its schedule") {
  const FoundSchedule found = search_schedule(asked(), {.timed_actions = 1e6}).value();
  const Certificate certificate = parse_certificate(certificate_text(certificate_of(asked(), found)), "c.json");
  CHECK(certificate.time == found.time);
  CHECK(certificate.bound == found.bound);
  CHECK(certificate_faults(certificate, found.schedule).empty());
}

TEST_CASE("a certificate of another time, bound or memory, or for another schedule, does not hold") {
  const FoundSchedule found = search_schedule(asked(), {.timed_actions = 1e6}).value();
  const Certificate right = certificate_of(asked(), found);
  Certificate wrong = right;
  ++wrong.time;
  CHECK(certificate_faults(wrong, found.schedule).size() == 1);
  wrong = right;
  ++wrong.bound.time;
  CHECK(certificate_faults(wrong, found.schedule).size() == 1);
  wrong = right;
  wrong.memory.max_bytes[0] = 1;  // then the bound is another one, too
  CHECK(certificate_faults(wrong, found.schedule).size() == 2);
  wrong = right;
  wrong.costs.forward.pop_back();
  CHECK(certificate_faults(wrong, found.schedule) ==
        std::vector<std::string>{"it has 3 entries of forward costs, where the schedule has 4"});
  CHECK_FALSE(certificate_faults(right, make_schedule("gpipe", {.ranks = 4, .microbatches = 6})).empty());
}

TEST_CASE("an exhaustive search is a bound that is searched again") {
  OrderQuestion question = chain_question(2, 3, {.forward = 3, .input_grad = 2, .weight_grad = 1}, 2);
  FoundSchedule found = search_schedule(question).value();
  found.bound = exhaustive_bound(found.time);
  CHECK(certificate_faults(certificate_of(question, found), found.schedule).empty());
  found.bound = exhaustive_bound(found.time + 1);
  CHECK(certificate_faults(certificate_of(question, found), found.schedule).size() == 1);
}

TEST_CASE("the work and the memory of a rank alone are a bound that is searched again") {
  OrderQuestion question{.frame = {.name = "v", .microbatches = 8, .stages = snake_placement(4, 8)},
                         .ranks = 4,
                         .costs = equal_costs({.weight_grad = 1}, 8)};
  question.memory = counted_activations(question, 4);
  const FoundSchedule found = search_schedule(question, {.timed_actions = 5e6}).value();
  CHECK(found.bound.reason == rank_alone_reason(3));
  CHECK(certificate_faults(certificate_of(question, found), found.schedule).empty());
  Certificate wrong = certificate_of(question, found);
  ++wrong.bound.time;
  CHECK(certificate_faults(wrong, found.schedule).size() == 1);
}

TEST_CASE("the costs of pairs are part of a certificate") {
  OrderQuestion question{.frame = {.name = "v", .microbatches = 4, .stages = snake_placement(2, 4)},
                         .ranks = 2,
                         .costs = equal_costs({.forward = 10, .input_grad = 10, .weight_grad = 10}, 4)};
  question.costs.pairs = {.input_grad = std::vector<std::int64_t>(16, 15),
                          .backward = std::vector<std::int64_t>(16, 25)};
  const FoundSchedule found = search_schedule(question, {.timed_actions = 1e6}).value();
  CHECK(found.time < 4 * 2 * 30);  // the work of a rank, one action after the other
  const Certificate certificate = parse_certificate(certificate_text(certificate_of(question, found)), "c.json");
  CHECK(certificate.costs.pairs == question.costs.pairs);
  CHECK(certificate_faults(certificate, found.schedule).empty());
  Certificate wrong = certificate;
  wrong.costs.pairs = {};
  CHECK_FALSE(certificate_faults(wrong, found.schedule).empty());
  wrong.costs.pairs.backward = {25};
  CHECK(certificate_faults(wrong, found.schedule) ==
        std::vector<std::string>{"it has 1 entries of pairs' costs, where the schedule has 16"});
}

TEST_CASE("a damaged certificate is refused with its place") {
  const FoundSchedule found = search_schedule(asked(), {.timed_actions = 1e6}).value();
  std::string text = certificate_text(certificate_of(asked(), found));
  text.replace(text.find("\"span\""), 6, "\"time\"");
  CHECK_THROWS_AS(parse_certificate(text, "c.json"), SpecError);
}

}  // namespace plumb::test
