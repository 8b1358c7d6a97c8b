#include "planner/exchange/facts/stage_names.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/refusal.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("torchtitan's modules name the layers one after the other") {
  CHECK(torchtitan_modules({1, 2}) ==
        nlohmann::json::parse(R"([["tok_embeddings", "layers.0"], ["layers.1", "layers.2", "norm", "output"]])"));
  CHECK(split_of_torchtitan(torchtitan_modules({3, 1, 2}), "job") == std::vector{3, 1, 2});
  check_refused<SpecError>(
      [] { split_of_torchtitan(nlohmann::json::parse(R"([["layers.1"], ["layers.0"]])"), "job.toml"); }, "job.toml",
      "where layers.0 follows");
}
