#include "planner/shard/mesh_pipeline.h"

#include <algorithm>
#include <random>

#include <doctest/doctest.h>

namespace plumb::test { namespace {

/// Returns the least objective over every way to cut the layers and to place the stages, one by one.
double tried_one_by_one(const MeshPipelineProblem& problem, std::vector<PipelineStage>& stages,
                        std::vector<int>& taken) {
  const int begin = stages.empty() ? 0 : stages.back().end;
  double best = std::numeric_limits<double>::infinity();
  if (begin == problem.layers) {
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const int in_flight = problem.in_flight(static_cast<int>(stages.size() - i));
      const MeshCost& cost = stages[i].cost;
      if (cost.state_bytes + in_flight * cost.in_flight_bytes > problem.bytes[problem.meshes[stages[i].mesh].site])
        return best;
    }
    if (problem.uses_all_devices && taken != problem.devices) return best;
    return pipeline_of(problem, stages).seconds;
  }
  for (int end = begin + 1; end <= problem.layers; ++end) {
    for (int mesh = 0; mesh < std::ssize(problem.meshes); ++mesh) {
      const SiteMesh& shape = problem.meshes[mesh];
      if (taken[shape.site] + shape.devices > problem.devices[shape.site]) continue;
      taken[shape.site] += shape.devices;
      stages.push_back({.begin = begin, .end = end, .mesh = mesh, .cost = problem.stage(begin, end, mesh)});
      best = std::min(best, tried_one_by_one(problem, stages, taken));
      stages.pop_back();
      taken[shape.site] -= shape.devices;
    }
  }
  return best;
}

TEST_CASE("the fastest pipeline is that of trying every one, on 200 random problems of one and two sites") {
  std::mt19937 random(7);
  const auto uniform = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
  int found = 0, without = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const int layers = 2 + static_cast<int>(random() % 4), sites = 1 + static_cast<int>(random() % 2);
    MeshPipelineProblem problem{.layers = layers,
                                .microbatches = 1 + static_cast<std::int64_t>(random() % 8),
                                .uses_all_devices = random() % 2 == 0,
                                .eager = random() % 2 == 0};
    for (int site = 0; site < sites; ++site) {
      problem.devices.push_back(1 + static_cast<int>(random() % 3));
      problem.bytes.push_back(uniform(4, 20));
      for (const int devices : {1, 2}) problem.meshes.push_back({.site = site, .devices = devices});
    }
    std::vector<MeshCost> costs;
    for (int i = 0; i < layers * (layers + 1) * std::ssize(problem.meshes); ++i)
      costs.push_back({.seconds = uniform(1, 10), .state_bytes = uniform(0, 4), .in_flight_bytes = uniform(0, 4)});
    problem.stage = [&, layers](int begin, int end, int mesh) {
      return costs[static_cast<std::size_t>((begin * layers + end - 1) * std::ssize(problem.meshes) + mesh)];
    };
    std::vector<StageTransfer> slow(static_cast<std::size_t>(layers));
    for (StageTransfer& transfer : slow) transfer = {.delay = uniform(0, 5), .occupied = uniform(0, 12)};
    problem.transfer = [&](int layer, int from, int to) {
      return from == to ? StageTransfer{} : slow[static_cast<std::size_t>(layer)];
    };
    std::vector<PipelineStage> stages;
    std::vector<int> taken(static_cast<std::size_t>(sites), 0);
    const double expected = tried_one_by_one(problem, stages, taken);
    const auto pipeline = fastest_pipeline(problem);
    CAPTURE(trial);
    REQUIRE(pipeline.has_value() == (expected < std::numeric_limits<double>::infinity()));
    ++(pipeline ? found : without);
    if (pipeline) CHECK(pipeline->seconds == doctest::Approx(expected).epsilon(1e-12));
  }
  CHECK(found > 50);
  CHECK(without > 5);
}

TEST_CASE("many micro-batches make stages even, few make their sum small") {
  MeshPipelineProblem problem{.layers = 4, .devices = {2}, .bytes = {1e9}, .meshes = {{0, 1}, {0, 2}}};
  // Two devices run a stage no faster than 0.6 of one: cutting in two is better once the pipeline is full.
  problem.stage = [](int begin, int end, int mesh) {
    return MeshCost{.seconds = (end - begin) * (mesh == 0 ? 1.0 : 0.6)};
  };
  const auto few = fastest_pipeline(problem);
  REQUIRE(few.has_value());
  CHECK(few->stages.size() == 1);
  CHECK(few->seconds == doctest::Approx(2.4));
  problem.microbatches = 16;
  const auto many = fastest_pipeline(problem);
  REQUIRE(many->stages.size() == 2);
  CHECK(many->stages.front().end == 2);
  CHECK(many->seconds == doctest::Approx(4 + 15 * 2));
}

}}  // namespace plumb::test
