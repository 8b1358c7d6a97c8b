#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "schedules/rules/validate.h"
#include "tests/schedules/text_rows.h"

namespace plumb::test {
namespace {

/// The schedule must be valid before and after lowering, or refused with the constraint that the catalogue states.
void check_valid(const CatalogueEntry& entry, const ScheduleParameters& parameters) {
  try {
    const Schedule schedule = make_schedule(entry.name, parameters);
    CHECK(validate(schedule).empty());
    CHECK(validate(lower(schedule)).empty());
  } catch (const ScheduleError& error) {
    CHECK_FALSE(entry.constraint.starts_with("any m"));
    CHECK(std::string_view(error.what()).find(entry.constraint) != std::string_view::npos);
  }
}

}  // namespace

TEST_CASE("naive runs one micro-batch through and back before the next") {
  CHECK(make_schedule("naive", {.ranks = 2, .microbatches = 2}).ranks == rows("0F0 0B0 0F1 0B1\n1F0 1B0 1F1 1B1"));
}

TEST_CASE("GPipe runs all forwards, then all backwards in ascending order") {
  CHECK(make_schedule("GPipe", {.ranks = 2, .microbatches = 3}).ranks ==
        rows("0F0 0F1 0F2 0B0 0B1 0B2\n1F0 1F1 1F2 1B0 1B1 1B2"));
}

TEST_CASE("1F1B runs p-1-r forwards ahead on rank r, fewer where there are fewer micro-batches") {
  CHECK(make_schedule("1f1b", {.ranks = 3, .microbatches = 4}).ranks == rows("0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3\n"
                                                                             "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3\n"
                                                                             "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3"));
  CHECK(make_schedule("1f1b", {.ranks = 3, .microbatches = 1}).ranks == rows("0F0 0B0\n1F0 1B0\n2F0 2B0"));
}

TEST_CASE("PipeDream steps its weights behind every backward and keeps the versions in flight") {
  const Schedule schedule = make_schedule("pipedream", {.ranks = 2, .microbatches = 2});
  CHECK(schedule.weights == WeightPolicy::kStashed);
  CHECK(schedule.ranks == rows("0F0 0F1 0B0 0OPTIMIZER_STEP 0B1 0OPTIMIZER_STEP\n"
                               "1F0 1B0 1OPTIMIZER_STEP 1F1 1B1 1OPTIMIZER_STEP"));
}

TEST_CASE("PipeDream with vertical sync runs the same order under another policy") {
  const Schedule stashed = make_schedule("pipedream", {.ranks = 3, .microbatches = 5});
  const Schedule synced = make_schedule("pipedream", {.ranks = 3, .microbatches = 5, .vertical_sync = true});
  CHECK(synced.weights == WeightPolicy::kVerticalSync);
  CHECK(synced.ranks == stashed.ranks);
}

TEST_CASE("PipeDream-2BW steps its weights behind every batch, the last of which may be smaller") {
  const Schedule schedule = make_schedule("pipedream-2bw", {.ranks = 2, .microbatches = 3});
  CHECK(schedule.weights == WeightPolicy::kTwoBuffered);
  CHECK(schedule.ranks == rows("0F0 0F1 0B0 0F2 0B1 0OPTIMIZER_STEP 0B2 0OPTIMIZER_STEP\n"
                               "1F0 1B0 1F1 1B1 1OPTIMIZER_STEP 1F2 1B2 1OPTIMIZER_STEP"));
}

TEST_CASE("PipeDream-2BW lists the version of a forward, one batch old, ahead of it, and refuses batches that cannot") {
  for (int p = 2; p <= 6; ++p) {
    for (int batch = 1; batch <= p + 1; ++batch) {
      const ScheduleParameters parameters{.ranks = p, .microbatches = 3 * p, .batch = batch};
      CAPTURE(p);
      CAPTURE(batch);
      if (batch < p - 1) {
        CHECK_THROWS_AS(make_schedule("pipedream-2bw", parameters), ScheduleError);
        continue;
      }
      for (const std::vector<Action>& actions : make_schedule("pipedream-2bw", parameters).ranks) {
        int version = 0;
        for (const Action& action : actions) {
          if (action.op == Op::kForward) CHECK(version >= std::max(0, action.microbatch / batch - 1));
          version += action.op == Op::kOptimizerStep;
        }
      }
    }
  }
  CHECK_NOTHROW(make_schedule("pipedream-2bw", {.ranks = 6, .microbatches = 2, .batch = 2}));
}

TEST_CASE("interleaved runs the chunks of a rank in turn, a group of micro-batches each") {
  // Megatron-LM's order for p=2, v=2, m=4: rank 1 runs one group (2) ahead, rank 0 two more.
  CHECK(make_schedule("interleaved", {.ranks = 2, .microbatches = 4, .chunks = 2}).ranks ==
        rows("0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3\n"
             "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3"));
}

TEST_CASE("eager 1F1B runs 2(p-1-r) forwards ahead on rank r") {
  CHECK(make_schedule("eager-1f1b", {.ranks = 2, .microbatches = 4}).ranks == rows("0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3\n"
                                                                                   "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"));
}

TEST_CASE("breadth-first runs each chunk's micro-batches in one go, and goes back the way it came") {
  CHECK(make_schedule("bfs", {.ranks = 2, .microbatches = 2, .chunks = 2}).ranks ==
        rows("0F0 0F1 2F0 2F1 2B1 2B0 0B1 0B0\n"
             "1F0 1F1 3F0 3F1 3B1 3B0 1B1 1B0"));
}

TEST_CASE("ZB-H1 keeps r weight gradients back on rank r, ZB-H2 2r, and fills the end with them") {
  CHECK(make_schedule("zb-h1", {.ranks = 2, .microbatches = 3}).ranks == rows("0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2\n"
                                                                              "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2"));
  CHECK(make_schedule("zb-h2", {.ranks = 2, .microbatches = 4}).ranks ==
        rows("0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3\n"
             "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1F3 1I3 1W1 1W2 1W3"));
}

TEST_CASE("interleaved zero bubble with one chunk is ZB-H1") {
  for (int m = 1; m <= 12; ++m) {
    CHECK(make_schedule("izb", {.ranks = 4, .microbatches = m}).ranks ==
          make_schedule("zb-h1", {.ranks = 4, .microbatches = m}).ranks);
  }
}

TEST_CASE("Seq1F1B runs slices forth in F and back in B") {
  CHECK(make_schedule("seq1f1b", {.ranks = 2, .microbatches = 2, .slices = 2}).ranks ==
        rows("0F0 0F0/1 0F1 0B0/1 0F1/1 0B0 0B1/1 0B1\n"
             "1F0 1F0/1 1B0/1 1F1 1B0 1F1/1 1B1/1 1B1"));
}

TEST_CASE("Seq1F1B is valid for any p, m and k, and one slice is 1F1B") {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 2 * p; ++m) {
      for (int k = 2; k <= 5; ++k) {
        CAPTURE(p);
        CAPTURE(m);
        CAPTURE(k);
        const Schedule schedule = make_schedule("seq1f1b", {.ranks = p, .microbatches = m, .slices = k});
        CHECK(validate(schedule).empty());
        CHECK(validate(lower(schedule)).empty());
      }
      const ScheduleParameters whole{.ranks = p, .microbatches = m};
      CHECK(make_schedule("seq1f1b", whole).ranks == make_schedule("1f1b", whole).ranks);
    }
  }
  CHECK_THROWS_AS(make_schedule("1f1b", {.slices = 2}), ScheduleError);
}

TEST_CASE("SVPP takes the slices of a group through all chunks, and is Seq1F1B with one chunk") {
  CHECK(make_schedule("svpp", {.ranks = 2, .microbatches = 1, .chunks = 2, .slices = 2}).ranks ==
        rows("0F0 0F0/1 2F0 2F0/1 2B0/1 2B0 0B0/1 0B0\n"
             "1F0 1F0/1 3F0 3F0/1 3B0/1 3B0 1B0/1 1B0"));
  for (int p = 1; p <= 5; ++p) {
    for (int k = 1; k <= 6; ++k) {
      for (int m = 1; m <= 8; ++m) {
        CAPTURE(p);
        CAPTURE(k);
        CAPTURE(m);
        const ScheduleParameters one{.ranks = p, .microbatches = m, .slices = k};
        CHECK(make_schedule("svpp", one).ranks == make_schedule("seq1f1b", one).ranks);
        const Schedule schedule = make_schedule("svpp", {.ranks = p, .microbatches = m, .chunks = 3, .slices = k});
        CHECK(validate(schedule).empty());
        CHECK(validate(lower(schedule)).empty());
      }
    }
  }
}

TEST_CASE("SlimPipe takes p slices through the chunks in turn, and goes back in the opposite order") {
  CHECK(make_schedule("slimpipe", {.ranks = 2, .microbatches = 1, .chunks = 2, .slices = 4}).ranks ==
        rows("0F0 0F0/1 2F0 2F0/1 0F0/2 0F0/3 2F0/2 2F0/3 2B0/3 2B0/2 0B0/3 0B0/2 2B0/1 2B0 0B0/1 0B0\n"
             "1F0 1F0/1 3F0 3F0/1 1F0/2 1F0/3 3F0/2 3F0/3 3B0/3 3B0/2 1B0/3 1B0/2 3B0/1 3B0 1B0/1 1B0"));
  CHECK(make_schedule("slimpipe", {.ranks = 2, .microbatches = 2, .slices = 2}).ranks ==
        rows("0F0 0F0/1 0F1 0F1/1 0B0/1 0B0 0B1/1 0B1\n"
             "1F0 1F0/1 1B0/1 1F1 1B0 1F1/1 1B1/1 1B1"));
}

TEST_CASE("SlimPipe is valid for any p, v, k and m, also where p does not divide k") {
  for (int p = 1; p <= 6; ++p) {
    for (int v = 1; v <= 3; ++v) {
      for (int k = 1; k <= 9; ++k) {
        for (const int m : {1, 2, 5, 7}) {
          INFO("p=", p, " v=", v, " k=", k, " m=", m);
          const Schedule order = make_schedule("slimpipe", {.ranks = p, .microbatches = m, .chunks = v, .slices = k});
          CHECK(validate(order).empty());
          CHECK(validate(lower(order)).empty());
        }
      }
    }
  }
}

TEST_CASE("TeraPipe runs all slices forth, then back, the last slice of a micro-batch first") {
  CHECK(make_schedule("terapipe", {.ranks = 2, .microbatches = 2, .slices = 2}).ranks ==
        rows("0F0 0F0/1 0F1 0F1/1 0B0/1 0B0 0B1/1 0B1\n"
             "1F0 1F0/1 1F1 1F1/1 1B0/1 1B0 1B1/1 1B1"));
  CHECK(validate(lower(make_schedule("terapipe", {.ranks = 4, .microbatches = 3, .slices = 5}))).empty());
  CHECK_THROWS_WITH(make_schedule("terapipe", {.slices = 40000}),
                    "terapipe cannot number 40000 slices: give 32767 or fewer");
}

TEST_CASE("GEMS sends micro-batches in turn from both ends, one behind the other") {
  CHECK(make_schedule("gems", {.ranks = 2, .microbatches = 3}).ranks == rows("0F0 0B0 3F1 3B1 0F2 0B2\n"
                                                                             "1F0 1B0 2F1 2B1 1F2 1B2"));
  CHECK_THROWS_AS(make_schedule("gems", {.ranks = 3, .microbatches = 2}), ScheduleError);
}

TEST_CASE("forward-only has no backward") {
  CHECK(make_schedule("forward-only", {.ranks = 2, .microbatches = 2}).ranks == rows("0F0 0F1\n1F0 1F1"));
}

TEST_CASE("every schedule is valid before and after lowering, for any p, v and m") {
  for (const CatalogueEntry& entry : catalogue()) {
    for (int p = 1; p <= 9; ++p) {
      for (int v = 1; v <= (entry.takes_chunks ? 4 : 1); ++v) {
        for (int m = 1; m <= 3 * p; ++m) {
          CAPTURE(entry.name);
          CAPTURE(p);
          CAPTURE(v);
          CAPTURE(m);
          check_valid(entry, {.ranks = p, .microbatches = m, .chunks = v});
        }
      }
    }
  }
}

TEST_CASE("every schedule takes 13 ranks and 29 micro-batches, or names its constraint") {
  for (const CatalogueEntry& entry : catalogue()) {
    CAPTURE(entry.name);
    check_valid(entry, {.ranks = 13, .microbatches = 29});
  }
}

TEST_CASE("the catalogue says which schedules have overlapped pairs") {
  for (const CatalogueEntry& entry : catalogue()) {
    CAPTURE(entry.name);
    const Schedule schedule = entry.make({.ranks = 4, .microbatches = 16, .chunks = entry.takes_chunks ? 2 : 1});
    const bool has_pairs = std::ranges::any_of(schedule.ranks, [](const std::vector<Action>& actions) {
      return std::ranges::any_of(actions, &Action::overlaps_next);
    });
    CHECK(has_pairs == entry.pairs);
  }
}

TEST_CASE("interleaved with m not a multiple of p is valid where Megatron's cut tail deadlocks") {
  CHECK(validate(lower(make_schedule("interleaved", {.ranks = 4, .microbatches = 5, .chunks = 3}))).empty());
  CHECK(validate(lower(make_schedule("interleaved", {.ranks = 13, .microbatches = 29, .chunks = 3}))).empty());
}

TEST_CASE("a group smaller than the ranks is refused where it would deadlock") {
  CHECK_THROWS_AS(make_schedule("interleaved", {.ranks = 4, .microbatches = 8, .chunks = 2, .group = 2}),
                  ScheduleError);
  CHECK(validate(make_schedule("interleaved", {.ranks = 4, .microbatches = 2, .chunks = 2, .group = 2})).empty());
  CHECK(validate(make_schedule("interleaved", {.ranks = 4, .microbatches = 12, .chunks = 2, .group = 6})).empty());
}

TEST_CASE("names and numbers that cannot be are refused with the remedy") {
  CHECK_THROWS_WITH(make_schedule("gpip", {}),
                    "there is no schedule \"gpip\": did you mean \"gpipe\"? `plumb schedule list` names them all");
  CHECK_THROWS_AS(make_schedule("1f1b", {.ranks = 0}), ScheduleError);
  CHECK_THROWS_AS(make_schedule("1f1b", {.microbatches = -1}), ScheduleError);
  CHECK_THROWS_WITH(
      make_schedule("1f1b", {.ranks = 1000, .microbatches = 100000}),
      "100000 micro-batches on 1000 ranks make a schedule of 1e+08 forwards, too long to write down: give "
      "fewer than 16777216");
  CHECK_THROWS_AS(make_schedule("seq1f1b", {.ranks = 4, .microbatches = 1 << 20, .slices = 8}), ScheduleError);
  CHECK_THROWS_AS(make_schedule("1f1b", {.chunks = 2}), ScheduleError);
}

TEST_CASE("a parameter that a schedule does not take is refused with those that do") {
  const auto refused = [](const ScheduleParameters& parameters, std::string_view taker, bool CatalogueEntry::*takes) {
    for (const CatalogueEntry& entry : catalogue()) {
      CAPTURE(entry.name);
      if (entry.*takes) {
        CHECK_NOTHROW(make_schedule(entry.name, parameters));
      } else {
        CHECK_THROWS_WITH_AS(make_schedule(entry.name, parameters),
                             doctest::Contains(std::string("leave it out, or use " + std::string(taker)).c_str()),
                             ScheduleError);
      }
    }
  };
  refused({.ranks = 2, .microbatches = 4, .group = 2}, "interleaved or izb", &CatalogueEntry::takes_group);
  refused({.ranks = 2, .microbatches = 4, .batch = 2}, "pipedream-2bw", &CatalogueEntry::takes_batch);
  refused({.ranks = 2, .microbatches = 4, .vertical_sync = true}, "pipedream", &CatalogueEntry::takes_vertical_sync);
  refused({.ranks = 2, .microbatches = 4, .memory_ratio = 2}, "zb-auto", &CatalogueEntry::takes_memory);
}

TEST_CASE("the period of a schedule is its ranks or its group; what does not repeat has none") {
  CHECK(period_of("1f1b", {.ranks = 4}) == 4);
  CHECK(period_of("Interleaved", {.ranks = 4, .chunks = 2, .group = 6}) == 6);
  CHECK(period_of("gpipe", {.ranks = 4}) == 0);
  CHECK(period_of("zb-v", {.ranks = 4}) == 4);
  CHECK(period_of("zb-v", {.ranks = 4, .costs = {.weight_grad = {Seconds{2}}}}) == 0);
  CHECK_THROWS_AS(period_of("1f2b", {}), ScheduleError);
}

}  // namespace plumb::test
