#include "tools/inputs/costs_file.h"

#include <doctest/doctest.h>

#include <string>

#include "schedules/error.h"
#include "schedules/generators/catalogue.h"

namespace plumb::test {
namespace {

const std::string kFile = R"({"plumb_format": 1,
  "parts": [{"forward_s": 1, "input_grad_s": 2, "weight_grad_s": 0.5, "activation_bytes": 100,
             "released_at_input_grad_bytes": 40, "message_bytes": 1000},
            {"forward_s": 3, "input_grad_s": 4, "weight_grad_s": 1, "activation_bytes": 200, "message_bytes": 2000}],
  "embedding": {"forward_s": 0.25, "input_grad_s": 0, "weight_grad_s": 0.25},
  "head": {"forward_s": 0.5, "input_grad_s": 0.5, "weight_grad_s": 0.5, "activation_bytes": 7},
  "links": [{"latency_s": 0.1, "bandwidth_gb_per_s": 1}],
  "max_activation_bytes": [500, 400]})";

}  // namespace

TEST_CASE("a file of costs has times by part, the ends besides, links, messages and memory") {
  const CostsOption option = parse_costs_file(kFile, "costs.json");
  const CostTable table = costs_for(option, make_schedule("1f1b", {.ranks = 2, .microbatches = 2}));
  const auto cost = [&table](Op op, int stage) { return duration_of(table, {.op = op, .stage = stage}); };
  CHECK(cost(Op::kForward, 0) == to_sim_time(Seconds{1.25}));
  CHECK(cost(Op::kWeightGrad, 0) == to_sim_time(Seconds{0.75}));
  CHECK(cost(Op::kBackward, 1) == to_sim_time(Seconds{4.5 + 1.5}));
  CHECK(cost(Op::kRecompute, 1) == to_sim_time(Seconds{3.5}));  // as long as the forward, unless it is given
  CHECK(table.stages[0].activation_message_bytes == 1000);
  CHECK(table.stages[1].gradient_message_bytes == 1000);  // of the input, which the first stage has sent
  CHECK(table.stages[0].memory.forward_bytes == 100);
  CHECK(table.stages[0].memory.released_at_input_grad_bytes == 40);
  CHECK(table.stages[1].memory.forward_bytes == 207);
  CHECK(link_between(table, 0, 1).bytes_per_second == 1e9);
  CHECK(link_between(table, 1, 0).latency == Seconds{0.1});
  CHECK(option.memory.max_bytes == std::vector<std::int64_t>{500, 400});
}

TEST_CASE("whole backwards have one time, and one entry of a list is for all") {
  const CostsOption option = parse_costs_file(
      R"({"parts": [{"forward_s": 1, "backward_s": 2}], "links": [{"latency_s": 0.5}]})", "costs.json");
  CHECK(option.whole_backward);
  const CostTable table = costs_for(option, make_schedule("1f1b", {.ranks = 3, .microbatches = 2}));
  CHECK(duration_of(table, {.op = Op::kBackward, .stage = 2}) == to_sim_time(Seconds{2}));
  CHECK(table.default_link.latency == Seconds{0.5});
  CHECK(option.memory.activation_bytes.empty());
  const CostTable by_link =
      costs_for(parse_costs_file(R"({"parts": [{"forward_s": 1, "backward_s": 2, "message_bytes": 8}],
                          "links": [{"latency_s": 1, "bandwidth_gb_per_s": 3}, {"latency_s": 2}]})",
                                 "costs.json"),
                make_schedule("1f1b", {.ranks = 3, .microbatches = 2}));
  CHECK(link_between(by_link, 0, 1).bytes_per_second == 3e9);
  CHECK(link_between(by_link, 2, 1).latency == Seconds{2});
}

TEST_CASE("a faulty file of costs is refused with file, place and remedy") {
  const auto said = [](std::string text, const std::string& part, const std::string& in_place) {
    text.replace(text.find(part), part.size(), in_place);
    try {
      parse_costs_file(text, "costs.json");
    } catch (const SpecError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(said(kFile, "\"forward_s\": 1,", "\"forwards_s\": 1,").starts_with("costs.json: parts"));
  CHECK(said(kFile, "\"forward_s\": 1,", "\"forward_s\": -1,").find("parts") != std::string::npos);
  CHECK(said(kFile, "bytes\": 40", "bytes\": 140").find("frees more than activation_bytes") != std::string::npos);
  CHECK(said(kFile, "[500, 400]", "[-500]").find("max_activation_bytes") != std::string::npos);
  CHECK(said(kFile, "\"plumb_format\": 1", "\"plumb_format\": 9").find("newer") != std::string::npos);
  CHECK(said(kFile, "\"links\": [{", "\"links\": [], \"more\": [{").find("links") != std::string::npos);
}

}  // namespace plumb::test
