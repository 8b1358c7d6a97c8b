#include "tools/inputs/costs_option.h"

#include <string>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"

namespace plumb::test {
namespace {
SimTime cost(const CostTable& costs, Op op, int stage) {
  return duration_of(costs, {.op = op, .stage = stage, .microbatch = 0});
}
}  // namespace

TEST_CASE("costs are read in their unit, by stage where there is a list") {
  const CostsOption option = parse_costs("f=1:2,i=0.5,w=3,c=0.25,unit=ms");
  const CostTable costs = costs_for(option, make_schedule("1f1b", {.ranks = 2, .microbatches = 2}));
  CHECK(cost(costs, Op::kForward, 1) == to_sim_time(Seconds{2e-3}));
  CHECK(cost(costs, Op::kBackward, 0) == to_sim_time(Seconds{3.5e-3}));
  CHECK(costs.default_link.latency == Seconds{0.25e-3});
  CHECK(option.unit.name == "ms");
}

TEST_CASE("a list may be by model part, for the stages of all lanes") {
  const CostsOption option = parse_costs("f=1:2,w=3:4:5:6");
  const CostTable costs = costs_for(option, make_schedule("chimera", {.ranks = 2, .microbatches = 2}));
  for (int stage = 0; stage < 4; ++stage) {
    CHECK(cost(costs, Op::kForward, stage) == to_sim_time(Seconds(1 + stage % 2)));  // both lanes have parts 0 and 1
    CHECK(cost(costs, Op::kWeightGrad, stage) == to_sim_time(Seconds(3 + stage)));
  }
  CHECK_THROWS_AS(costs_for(parse_costs("f=1:2:3"), make_schedule("chimera", {.ranks = 2, .microbatches = 2})),
                  SpecError);
}

TEST_CASE("a cost that no timeline holds is refused by its key") {
  for (const char* text : {"f=1e7", "f=1:1e300", "f=1e19,unit=ps", "c=1e7"}) {
    const std::string key = std::string("--costs: a ") + text[0] + "= of ";
    try {
      parse_costs(text);
      FAIL(text);
    } catch (const SpecError& error) {
      CHECK_MESSAGE(std::string(error.what()).starts_with(key), error.what());
    }
  }
  CHECK(parse_costs("f=2e6").chunk.forward.front() == Seconds{2e6});
  for (const char* text : {"f=inf", "f=nan", "mib=1e300,gb_per_s=1"}) CHECK_THROWS_AS(parse_costs(text), SpecError);
}

TEST_CASE("what is left out is one unit for F, I and W and nothing for the rest") {
  const CostTable costs = costs_for(parse_costs("c=0,unit=us"), make_schedule("1f1b", {.ranks = 1, .microbatches = 1}));
  CHECK(cost(costs, Op::kForward, 0) == to_sim_time(Seconds{1e-6}));
  CHECK(cost(costs, Op::kBackward, 0) == to_sim_time(Seconds{2e-6}));
  CHECK(cost(costs, Op::kRecompute, 0) == to_sim_time(Seconds{1e-6}));
  CHECK(cost(costs, Op::kOptimizerStep, 0) == SimTime{0});
}

TEST_CASE("messages have a size where the hops have a bandwidth") {
  const CostTable costs = costs_for(parse_costs("f=1,c=2,mib=4,gb_per_s=0.5,unit=ms"),
                                    make_schedule("1f1b", {.ranks = 2, .microbatches = 2}));
  CHECK(costs.stages[0].activation_message_bytes == 4 * 1024 * 1024);
  CHECK(costs.stages[1].gradient_message_bytes == 4 * 1024 * 1024);
  CHECK(costs.default_link.bytes_per_second == 5e8);
  CHECK(costs.default_link.latency == Seconds{2e-3});
  CHECK_THROWS_WITH_AS(parse_costs("mib=4"),
                       "--costs: mib= and gb_per_s= go together: give the size of a message and the bandwidth of a hop",
                       SpecError);
  CHECK_THROWS_AS(parse_costs("mib=4,gb_per_s=0"), SpecError);
  CHECK_THROWS_AS(parse_costs("mib=4:5,gb_per_s=1"), SpecError);
}

TEST_CASE("a list of hops is by link, with or without that from the last rank to the first") {
  const Schedule loop = make_schedule("interleaved", {.ranks = 3, .microbatches = 3, .chunks = 2});
  const CostTable costs = costs_for(parse_costs("c=1:2:3,mib=1,gb_per_s=2"), loop);
  CHECK(link_between(costs, 0, 1).latency == Seconds{1});
  CHECK(link_between(costs, 2, 1).latency == Seconds{2});
  CHECK(link_between(costs, 2, 0).latency == Seconds{3});
  CHECK(link_between(costs, 2, 0).bytes_per_second == 2e9);
  CHECK(costs_for(parse_costs("c=1:2"), loop).links.size() == 4);
  CHECK(parse_costs("c=1:2").chunk.hop_latency == Seconds{2});  // the longest, where one number is wanted
  CHECK_THROWS_WITH_AS(
      costs_for(parse_costs("c=1:2:3:4"), loop),
      "--costs: c= has 4 latencies for 3 ranks: give one, one for each of the 2 links between neighbours, "
      "or 3 with that from the last rank to the first",
      SpecError);
  CHECK_THROWS_WITH_AS(costs_for(parse_costs("c=1:2"), make_schedule("1f1b", {.ranks = 2, .microbatches = 3})),
                       "--costs: c= has 2 latencies for 2 ranks, which have one link between them: give one",
                       SpecError);
}

TEST_CASE("b= prices whole backwards and is refused for a split one") {
  CHECK(cost(costs_for(parse_costs("b=5"), parse_schedule("0F0 0B0")), Op::kBackward, 0) == to_sim_time(Seconds{5}));
  CHECK_THROWS_AS(costs_for(parse_costs("b=5"), parse_schedule("0F0 0I0 0W0")), SpecError);
}

TEST_CASE("moves of activations and collectives cost nothing unless they are priced") {
  const Schedule schedule = make_schedule("1f1b", {.ranks = 2, .microbatches = 2});
  const CostTable free = costs_for(parse_costs("f=1"), schedule);
  const CostTable priced = costs_for(parse_costs("x=3:4,u=5,g=6"), schedule);
  for (const Op op : {Op::kOffload, Op::kReload, Op::kEvict, Op::kLoad}) {
    CHECK(cost(free, op, 1) == SimTime{0});
    CHECK(cost(priced, op, 1) == to_sim_time(Seconds{4}));
  }
  CHECK(cost(free, Op::kUnshard, 0) == SimTime{0});
  CHECK(cost(priced, Op::kUnshard, 0) == to_sim_time(Seconds{5}));
  CHECK(cost(priced, Op::kReduceGrad, 0) == to_sim_time(Seconds{6}));
}

TEST_CASE("a fault in the option is named") {
  for (const char* text : {"f", "f=", "f=x", "f=-1", "f=1,f=2", "q=1", "unit=h", "f=1:", ""}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_costs(text), SpecError);
  }
  CHECK_THROWS_AS(costs_for(parse_costs("f=1:2:3"), make_schedule("1f1b", {.ranks = 2, .microbatches = 1})), SpecError);
}

}  // namespace plumb::test
