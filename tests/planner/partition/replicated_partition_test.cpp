#include "planner/partition/replicated_partition.h"

#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/partition/profiled_graph.h"
#include "tests/planner/partition/chains.h"
#include "tests/shared_folder.h"

namespace plumb::test {
TEST_CASE("alike nodes and free links: as many devices, as many times as fast") {
  const auto partition = replicated_partition(chain_of_times({1, 1, 1, 1, 1, 1}), {}, {.devices = 3});
  CHECK(partition->slowest.count() == doctest::Approx(2));
  const auto uneven = replicated_partition(chain_of_times({3, 1}), {}, {.devices = 4});
  CHECK(uneven->slowest.count() == doctest::Approx(1));
}

TEST_CASE("weights that are reduced slowly are put on one device, light and slow nodes on several") {
  Chain chain = chain_of_times({8, 2});
  const auto partition = replicated_partition(chain, {0, 1e9}, {.devices = 5, .bytes_per_second = 1e9});
  REQUIRE(partition->stages.size() == 2);
  CHECK(partition->stages[0].replicas == 4);
  CHECK(partition->stages[1].replicas == 1);
  CHECK(partition->slowest.count() == doctest::Approx(2));
}

TEST_CASE("a transfer that lasts longer than every stage counts, unless it is left out") {
  Chain chain = chain_of_times({2, 2});
  chain.cut_bytes = {0, 10, 0};
  const ReplicatedLimits counted{.devices = 2, .bytes_per_second = 1, .straight = true};
  CHECK(replicated_partition(chain, {}, counted)->slowest.count() == doctest::Approx(20));
  ReplicatedLimits ignored = counted;
  ignored.transfers = false;
  CHECK(replicated_partition(chain, {}, ignored)->slowest.count() == doctest::Approx(2));
}

TEST_CASE("memory forbids what does not fit") {
  Chain chain = chain_of_times({1, 1});
  chain.state_bytes = {5, 5};
  CHECK(replicated_partition(chain, {}, {.devices = 2, .bytes = 10})->slowest.count() == doctest::Approx(1));
  CHECK(replicated_partition(chain, {}, {.devices = 2, .bytes = 5})->stages.size() == 2);
  CHECK_FALSE(replicated_partition(chain, {}, {.devices = 2, .bytes = 4}));
}

TEST_SUITE("oracle") {
  TEST_CASE("chains are cut as PipeDream's own optimizer cuts them: equal times of the slowest stage") {
    const std::optional<std::string> answers = shared_text("oracles/pipedream/runs.jsonl");
    if (!answers) return;
    int compared = 0;
    std::istringstream runs(*answers);
    for (std::string line; std::getline(runs, line);) {
      const nlohmann::json run = nlohmann::json::parse(line);
      const std::string model = run["model"], cfg = run["cfg"], extra = run["extra"];
      int devices = 0;
      double bandwidth = 0;
      char more[2];
      const bool one_level = std::sscanf(cfg.c_str(), "-n %d -b %lf%1s", &devices, &bandwidth, more) == 2;
      const bool straight = extra == "--straight_pipeline";
      if (!one_level || !(extra.empty() || straight) || !(model == "vgg16" || model == "alexnet")) continue;
      CAPTURE(line);
      const auto nodes =
          parse_pipedream_profile(shared_text("oracles/pipedream/" + model + ".graph.txt").value(), model);
      const Chain chain = chain_of(nodes, 0);
      std::vector<double> weights;
      for (const ProfiledNode& node : nodes) weights.push_back(node.parameter_bytes);
      const auto partition = replicated_partition(
          chain, weights,
          {.devices = devices, .bytes_per_second = bandwidth, .transfers = false, .straight = straight});
      REQUIRE(partition);
      CHECK(partition->slowest.count() == doctest::Approx(std::stod(run["Tstage"].get<std::string>())).epsilon(1e-9));
      ++compared;
    }
    CHECK(compared >= 6);
  }
}

}  // namespace plumb::test
