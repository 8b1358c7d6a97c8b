#include "tools/machine/machine_speed.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/layer/kernel_call.h"

namespace plumb::test {

TEST_CASE("a machine's speed is the geometric mean over the kernels that were measured twice") {
  const std::vector<KernelSample> calibrated = {{.kernel = "gemm", .shape = {1}, .median = Seconds{1e-3}},
                                                {.kernel = "gemm", .shape = {2}, .median = Seconds{1e-3}},
                                                {.kernel = "gemm", .shape = {3}, .median = Seconds{1e-3}}};
  const std::vector<KernelSample> measured = {{.kernel = "gemm", .shape = {1}, .median = Seconds{2e-3}},
                                              {.kernel = "gemm", .shape = {2}, .median = Seconds{8e-3}},
                                              {.kernel = "norm", .shape = {3}, .median = Seconds{1e-3}}};
  const std::optional<MachineSpeed> speed = speed_between(calibrated, measured);
  REQUIRE(speed);
  CHECK(speed->kernels == 2);
  CHECK(speed->ratio == doctest::Approx(0.25));
  CHECK(!speed_between(calibrated, {}));
}

TEST_CASE("a machine's speed is measured by the kernels of its calibration") {
  ClusterSpec cluster{.name = "this"};
  for (const auto& [kernel, shape] : {std::pair<std::string, std::vector<std::int64_t>>{"gemm", {256, 512, 256, 1, 0}},
                                      {"gemm", {256, 256, 512, 1, 1}},
                                      {std::string(kernel_name(KernelKind::kActivationForward)), {128, 1024, 0}}})
    cluster.samples.push_back({.kernel = kernel, .shape = shape, .median = Seconds{1e-3}, .busy_ranks = 1});
  const std::optional<MachineSpeed> speed =
      machine_speed(cluster, 1, Seconds{2});  // time for all, on a busy machine too
  REQUIRE(speed);
  CHECK(speed->kernels == 3);
  CHECK(speed->ratio > 0);
}

TEST_CASE("without samples of so many busy ranks nothing is known of a machine's speed") {
  CHECK(!machine_speed({}, 1, Seconds{0.1}));
  ClusterSpec cluster;
  cluster.samples = {{.kernel = "gemm", .shape = {128, 256, 256, 1, 0}, .median = Seconds{200e-6}, .busy_ranks = 2}};
  CHECK(!machine_speed(cluster, 1, Seconds{0.1}));
  cluster.samples[0].busy_ranks = 1;
  cluster.samples[0].median = Seconds{1};  // too long to measure again beside a run
  CHECK(!machine_speed(cluster, 1, Seconds{0.1}));
}

TEST_CASE("a machine's state is told as far as it is known") {
  CHECK(to_text(MachineState{}).empty());
  CHECK(to_json(MachineState{})["speed_before"].is_null());
  const MachineState state{MachineSpeed{0.97, 20}, MachineSpeed{1.02, 20}, OtherPrograms{.cores = 0.25, .host = 0.5}};
  CHECK(to_text(state) ==
        "the machine ran at 0.97 of its calibrated speed before the run, and at 1.02 after it (20 kernels); other "
        "programs had 0.25 cores under way, and the host took 0.50\n");
  CHECK(to_json(state)["others_cores"] == 0.25);
}

TEST_CASE("what this process does is not another program's") {
  const OtherProgramsClock clock;
  double sum = 0;
  for (int i = 0; i < 30'000'000; ++i) sum += 1.0 / (1 + i);
  CHECK(sum > 1);
  if (const std::optional<OtherPrograms> others = clock.read()) CHECK(others->cores >= 0);
}

}  // namespace plumb::test
