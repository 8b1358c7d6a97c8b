#include "schedules/passes/add_offload.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/liveness.h"
#include "schedules/passes/lower.h"
#include "schedules/rules/validate.h"
#include "tests/schedules/text_rows.h"

namespace plumb::test {
namespace {

std::string offloaded(std::string_view rows, int kept) {
  return to_text(add_offload(parse_schedule(rows), kept));
}

std::vector<Action> compute_only(std::vector<Action> actions) {
  std::erase_if(actions, [](const Action& a) { return !is_compute(a.op); });
  return actions;
}

}  // namespace

TEST_CASE("what is needed last goes, and comes back one compute action ahead of its backward") {
  CHECK(offloaded("0F0 0F1 0F2 0B0 0B1 0B2", 1) ==
        text("0F0 0F1 0OFFLOAD1 0F2 0OFFLOAD2 0RELOAD1 0B0 0RELOAD2 0B1 0B2"));
  CHECK(offloaded("0F0 0F1 0F2 0F3 0B3 0B2 0B1 0B0", 2) ==
        text("0F0 0F1 0F2 0OFFLOAD0 0F3 0OFFLOAD1 0B3 0RELOAD1 0B2 0RELOAD0 0B1 0B0"));
}

TEST_CASE("what is kept anyway, or needed within two actions, stays") {
  CHECK(offloaded("0F0 0F1 0B0 0B1", 2) == text("0F0 0F1 0B0 0B1"));
  CHECK(offloaded("0F0 0B0 0F1 0B1", 0) == text("0F0 0B0 0F1 0B1"));
  CHECK(offloaded("0F0 0F1 0B0 0B1", 0) == text("0F0 0F1 0B0 0B1"));
  CHECK(offloaded("0F0 0F1 0F2", 0) == text("0F0 0F1 0F2"));  // without a backward nothing is kept
}

TEST_CASE("a recomputation is the first to need what its forward kept") {
  CHECK(offloaded("0F0 0F1 0F2 0R0 0B0 0R1 0B1 0R2 0B2", 1) ==
        text("0F0 0F1 0OFFLOAD1 0F2 0OFFLOAD2 0R0 0RELOAD1 0B0 0R1 0RELOAD2 0B1 0R2 0B2"));
}

TEST_CASE("an activation stays while its weight gradient waits, and slices move one by one") {
  CHECK(offloaded("0F0 0F1 0F2 0I0 0I1 0I2 0W0 0W1 0W2", 1) ==
        text("0F0 0F1 0OFFLOAD1 0F2 0OFFLOAD2 0RELOAD1 0I0 0RELOAD2 0I1 0I2 0W0 0W1 0W2"));
  CHECK(offloaded("0F0 0F0/1 0F0/2 0B0/2 0B0/1 0B0", 1) == text("0F0 0F0/1 0OFFLOAD0 0F0/2 0B0/2 0RELOAD0 0B0/1 0B0"));
}

TEST_CASE("pairs are not torn apart") {
  CHECK(offloaded("0F0 0F1 0F2 0B0&0F3 0B1 0B2 0B3", 1) ==
        text("0F0 0F1 0OFFLOAD1 0F2 0OFFLOAD2 0RELOAD1 0B0&0F3 0OFFLOAD3 0RELOAD2 0B1 0RELOAD3 0B2 0B3"));
}

TEST_CASE("a negative number and a schedule that moves activations already are refused") {
  CHECK_THROWS_WITH_AS(offloaded("0F0 0B0", -1), "-1 activations cannot be kept: give 0 or more", ScheduleError);
  CHECK_THROWS_WITH_AS(add_offload(make_schedule("bpipe", {.ranks = 8, .microbatches = 8}), 2),
                       "bpipe moves activations already (0EVICT4): offload a schedule that keeps them", ScheduleError);
}

TEST_SUITE("property") {
  TEST_CASE("every schedule can be offloaded, keeps its order and no more than it may") {
    for (const CatalogueEntry& entry : catalogue()) {
      if (entry.name == "bpipe") continue;
      for (const int chunks : {1, 2}) {
        if (chunks > 1 && !entry.takes_chunks) continue;
        const Schedule order =
            entry.make({.ranks = 4, .microbatches = 12, .chunks = chunks, .slices = entry.takes_slices ? 3 : 1});
        for (const int kept : {0, 1, 2, 3, 5}) {
          const Schedule result = lower(order, {.offload = kept});
          INFO(entry.name, " v=", chunks, " kept=", kept);
          CHECK(validate(result).empty());
          for (std::size_t r = 0; r < order.ranks.size(); ++r) {
            const Schedule before = lower(order);
            CHECK(compute_only(result.ranks[r]) == compute_only(before.ranks[r]));
            const bool splits =
                std::ranges::any_of(order.ranks[r], [](const Action& a) { return a.op == Op::kInputGrad; });
            const int peak = liveness(result)[r].peak;
            CHECK(peak <= liveness(before)[r].peak);
            const bool trains =
                std::ranges::any_of(order.ranks[r], [](const Action& a) { return gives_input_gradient(a.op); });
            if (trains && !splits) CHECK(peak <= std::max(kept + 1, 3));
          }
        }
      }
    }
  }
}

}  // namespace plumb::test
