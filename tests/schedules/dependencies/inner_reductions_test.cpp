#include "schedules/dependencies/inner_reductions.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/dependencies/weight_messages.h"
#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "schedules/rules/validate.h"
#include "tests/schedules/only_violation.h"

namespace plumb::test {
namespace {

using Hosts = std::vector<std::int64_t>;

Hosts hosts_of(std::string_view row) {
  const Schedule schedule = parse_schedule(row);
  return hosts_of_reductions(schedule.ranks.front(), has_copies(schedule));
}

std::string lowered_text(std::string_view rows, const DataParallel& data) {
  return to_text(lower(parse_schedule(rows), {.data = data}));
}

}  // namespace

TEST_SUITE("inner_reductions") {
  TEST_CASE("a reduction directly before the last weight gradient of its stage starts inside it") {
    CHECK(hosts_of("0F0 0REDUCE_GRAD 0B0") == Hosts{-1, 2, -1});
    CHECK(hosts_of("0F0 0I0 0REDUCE_GRAD 0REDUCE_GRAD/1 0W0 0OPTIMIZER_STEP") == Hosts{-1, -1, 4, 4, -1, -1});
  }

  TEST_CASE("behind its gradient, or before one that is not the last, it has no host") {
    CHECK(hosts_of("0F0 0B0 0REDUCE_GRAD") == Hosts{-1, -1, -1});
    CHECK(hosts_of("0F0 0F1 0REDUCE_GRAD 0B0 0B1") == Hosts{-1, -1, -1, -1, -1});
  }

  TEST_CASE("each batch of an asynchronous run has a last gradient of its own") {
    CHECK(hosts_of("weights: stashed\n0F0 0REDUCE_GRAD 0B0 0OPTIMIZER_STEP 0F1 0REDUCE_GRAD 0B1 0OPTIMIZER_STEP") ==
          Hosts{-1, 2, -1, -1, -1, 6, -1, -1});
  }

  TEST_CASE("messages may stand between, actions of other stages may not") {
    const Schedule schedule = parse_schedule("0F0 0REDUCE_GRAD 0RECV_B0 0B0\n1F0 1B0");
    CHECK(hosts_of_reductions(schedule.ranks[0], false) == Hosts{-1, 3, -1, -1});
    CHECK(hosts_of("0F0 1F0 0REDUCE_GRAD 1B0 0B0") == Hosts{-1, -1, -1, -1, -1});
  }

  TEST_CASE("what is reduced once more behind the action, as in ZeRO 2, starts when it is issued") {
    CHECK(hosts_of("0F0 0F1 0B0 0REDUCE_GRAD 0B1 0REDUCE_GRAD") == Hosts{-1, -1, -1, -1, -1, -1});
    CHECK(hosts_of("0F0 0REDUCE_GRAD 0REDUCE_GRAD/1 0B0 0REDUCE_GRAD") == Hosts{-1, -1, 3, -1, -1});
  }

  TEST_CASE("overlapped pairs are no hosts, and copies of stages have none") {
    CHECK(hosts_of("0F0 0F1 0B0 0REDUCE_GRAD 0B1&0F2") == Hosts{-1, -1, -1, -1, -1, -1});
    const Schedule copies = parse_schedule("stages: 0/0/0 1/0/1\n0F0 0REDUCE_GRAD 0B0\n1F1 1REDUCE_GRAD 1B1");
    CHECK(hosts_of_reductions(copies.ranks[0], has_copies(copies)) == Hosts{-1, -1, -1});
  }

  TEST_CASE("lowering lists the buckets of each stage right ahead of its last gradient") {
    CHECK(lowered_text("0F0 0F1 0B0 0B1", {.enabled = true, .buckets = {2}}) ==
          to_text(parse_schedule("0F0 0F1 0B0 0REDUCE_GRAD 0REDUCE_GRAD/1 0B1 0OPTIMIZER_STEP")));
    CHECK(lowered_text("0F0 1F0 1I0 0I0 1W0 0W0", {.enabled = true, .zero = 1, .buckets = {1, 2}}) ==
          to_text(parse_schedule("0F0 1F0 1I0 0I0 1REDUCE_GRAD 1REDUCE_GRAD/1 1W0 0REDUCE_GRAD 0W0 "
                                 "0OPTIMIZER_STEP 0UNSHARD 1OPTIMIZER_STEP 1UNSHARD")));
  }

  TEST_CASE("where the last gradient is one of an overlapped pair, the buckets stand behind the pair") {
    CHECK(lowered_text("0F0 0F1 0B0 0B1&0F2 0B2&0F3 0B3", {.enabled = true, .buckets = {1}}) ==
          to_text(parse_schedule("0F0 0F1 0B0 0B1&0F2 0B2&0F3 0REDUCE_GRAD 0B3 0OPTIMIZER_STEP")));
    CHECK(lowered_text("0F0 1F0 1F1 0B0&1B0 1B1 0F1 0B1&1F2 1B2 0F2 1F3 0B2&1B3 0F3 0B3",
                       {.enabled = true, .buckets = {2}})
              .find("0B2&1B3 1REDUCE_GRAD 1REDUCE_GRAD/1 ") != std::string::npos);
  }

  TEST_CASE("every schedule with buckets is valid, and each bucket has a host unless it is in a pair or has copies") {
    for (const CatalogueEntry& entry : catalogue()) {
      const Schedule order = entry.make({.ranks = 4, .microbatches = 8, .chunks = entry.takes_chunks ? 2 : 1});
      CAPTURE(entry.name);
      if (weights_travel(order)) continue;
      CHECK(validate(lower(order, {.data = {.enabled = true, .buckets = {3}}})).empty());
    }
    const Schedule plain = lower(make_schedule("1f1b", {.ranks = 4, .microbatches = 8}),
                                 {.data = {.enabled = true, .buckets = {3}}, .receives = Receives::kLate});
    for (const std::vector<Action>& actions : plain.ranks) {
      const Hosts hosts = hosts_of_reductions(actions, has_copies(plain));
      CHECK(std::ranges::count_if(hosts, [](std::int64_t host) { return host >= 0; }) == 3);
    }
  }

  TEST_CASE("a bucket that is not reduced behind its last gradient breaks a rule, and so does a wrong order") {
    CHECK(to_text(only_violation("0F0 0F1 0REDUCE_GRAD 0B0 0B1 0OPTIMIZER_STEP")) ==
          "rank 0, position 5: 0OPTIMIZER_STEP takes 2 weight gradients that are not reduced; add 0REDUCE_GRAD ahead "
          "(sharding)");
    CHECK(to_text(only_violation("0F0 0F1 0REDUCE_GRAD/1 0B0 0REDUCE_GRAD 0B1 0OPTIMIZER_STEP")) ==
          "rank 0, position 6: 0OPTIMIZER_STEP takes 2 weight gradients that are not reduced; add 0REDUCE_GRAD/1 ahead "
          "(sharding)");
    CHECK(to_text(only_violation("0F0 0REDUCE_GRAD/1 0REDUCE_GRAD 0B0 0OPTIMIZER_STEP")) ==
          "rank 0, position 2: 0REDUCE_GRAD stands behind bucket 1, which is complete later; list the buckets inside "
          "0B0 in ascending order (sharding)");
  }

  TEST_CASE("buckets that cannot be are refused") {
    const Schedule order = make_schedule("1f1b", {.ranks = 2, .microbatches = 2});
    CHECK_THROWS_AS(lower(order, {.data = {.enabled = true, .zero = 2, .buckets = {2}}}), ScheduleError);
    CHECK_THROWS_AS(lower(order, {.data = {.enabled = true, .buckets = {1, 2, 3}}}), ScheduleError);
    CHECK_THROWS_AS(lower(order, {.data = {.enabled = true, .buckets = {0}}}), ScheduleError);
  }
}

}  // namespace plumb::test
