// The zero-bubble authors' own schedules, and their schedulers' reports for them (tests/shared_folder.h).

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include <doctest/doctest.h>

#include "schedules/forms/torch_csv.h"
#include "schedules/rules/validate.h"
#include "tests/schedules/zero_bubble_rows.h"
#include "tests/shared_folder.h"
#include "tests/simulator/support.h"

namespace plumb::test {
namespace fs = std::filesystem;

namespace {

/// "2p chunks(=1x)", "peak=6 chunks".
int chunk_limit(const ZeroBubbleRow& row) {
  const std::size_t equals = row.memory_limit.find("peak=");
  return equals == 0 ? std::stoi(row.memory_limit.substr(5)) : 2 * row.ranks;
}

CostTable costs_of(const ZeroBubbleRow& row, const Schedule& schedule) {
  return chunk_cost_table(stage_count(schedule), {.forward = {Seconds{row.f}},
                                                  .input_grad = {Seconds{row.b}},
                                                  .weight_grad = {Seconds{row.w}},
                                                  .hop_latency = Seconds{row.c}});
}

void check_span(const std::string& file, const ZeroBubbleRow& row) {
  CAPTURE(file);
  const Schedule schedule = read_torch_csv(shared_text(kZeroBubbleFolder + file).value(), file).schedule;
  CHECK(validate(schedule).empty());
  CHECK(longest_span(simulate(lower(schedule), costs_of(row, schedule))) == to_sim_time(Seconds{row.span}));
}

}  // namespace

TEST_SUITE("oracle") {
  TEST_CASE("the zero-bubble authors' schedules are valid and take the span that they report") {
    // File names and the (scheduler, memory limit) of their rows.
    const std::map<std::string, std::pair<std::string, std::string>> kinds = {{"ZB1P", {"zb_auto", "1p"}},
                                                                              {"ZB2P", {"zb_auto", "2p"}},
                                                                              {"ZBV", {"zbv", ""}},
                                                                              {"Vhalf", {"v-half", ""}},
                                                                              {"Vmin", {"v-min", ""}}};
    const std::vector<ZeroBubbleRow> rows = zero_bubble_rows();
    if (rows.empty()) return;
    const std::regex pattern("(\\w+)_p4_m8_f(\\d+)_b(\\d+)_w(\\d+)_c(\\d+)\\.compute_only\\.csv");
    int checked = 0;
    for (const auto& entry : fs::directory_iterator(shared_folder() / kZeroBubbleFolder)) {
      const std::string file = entry.path().filename();
      std::smatch match;
      if (!std::regex_match(file, match, pattern)) continue;
      const auto& [scheduler, limit] = kinds.at(match[1]);
      const auto row = std::ranges::find_if(rows, [&](const ZeroBubbleRow& r) {
        return r.scheduler == scheduler && r.ranks == 4 && r.f == std::stod(match[2]) && r.b == std::stod(match[3]) &&
               r.w == std::stod(match[4]) && r.c == std::stod(match[5]) && (limit.empty() || r.memory_limit == limit);
      });
      REQUIRE(row != rows.end());
      check_span(file, *row);
      ++checked;
    }
    CHECK(checked == 15);
  }

  TEST_CASE("V-Half and V-Min take the authors' span and memory at F = I = W with free links, ZB-V theirs") {
    const std::map<std::string, std::string> names = {{"v-half", "v-half"}, {"v-min", "v-min"}, {"zbv", "zb-v"}};
    for (const ZeroBubbleRow& row : zero_bubble_rows()) {
      if (!names.contains(row.scheduler) || row.f != row.b || row.b != row.w || row.c != 0) continue;
      CAPTURE(row.scheduler);
      CAPTURE(row.ranks);
      const Schedule schedule = lowered(names.at(row.scheduler), row.ranks, row.microbatches);
      const Simulation result = simulate(schedule, costs_of(row, schedule));
      CHECK(longest_span(result) == to_sim_time(Seconds{row.span}));
      CHECK(std::ranges::max(result.peak_activations) <= chunk_limit(row));
    }
  }

  TEST_CASE("ZB-V, V-Half and V-Min, made for a row's costs, reach the authors' span within its memory") {
    const std::map<std::string, std::string> names = {{"v-half", "v-half"}, {"v-min", "v-min"}, {"zbv", "zb-v"}};
    int checked = 0;
    const std::vector<ZeroBubbleRow> rows = zero_bubble_rows();
    for (const ZeroBubbleRow& row : rows) {
      if (!names.contains(row.scheduler)) continue;
      CAPTURE(row.scheduler);
      CAPTURE(row.ranks);
      CAPTURE(row.b);
      CAPTURE(row.w);
      CAPTURE(row.c);
      const SimTime theirs = to_sim_time(Seconds{row.span});
      const Schedule made = make_schedule(names.at(row.scheduler), {.ranks = row.ranks,
                                                                    .microbatches = row.microbatches,
                                                                    .costs = {.forward = {Seconds{row.f}},
                                                                              .input_grad = {Seconds{row.b}},
                                                                              .weight_grad = {Seconds{row.w}},
                                                                              .hop_latency = Seconds{row.c}},
                                                                    .goal_span = theirs});
      CHECK(validate(made, {.max_activations = {chunk_limit(row)}}).empty());
      const Simulation result = simulate(lower(made), costs_of(row, made));
      CHECK(longest_span(result) <= theirs);
      ++checked;
    }
    CHECK((rows.empty() || checked == 108));
  }

  TEST_CASE(
      "the authors' V-1F1B and interleaved schedules take 63 and 57 thousand at F = I = W = 1000, our V-1F1B too") {
    if (zero_bubble_rows().empty()) return;
    const ZeroBubbleRow unit{.f = 1000, .b = 1000, .w = 1000};
    for (const auto& [file, span] : {std::pair{"V1F1B", 63000.0}, std::pair{"VPP2", 57000.0}}) {
      ZeroBubbleRow row = unit;
      row.span = span;
      check_span(std::string(file) + "_p4_m8.compute_only.csv", row);
    }
    const Schedule ours = lowered("v-1f1b", 4, 8);
    CHECK(longest_span(simulate(ours, costs_of(unit, ours))) == to_sim_time(Seconds{63000}));
  }
}

}  // namespace plumb::test
