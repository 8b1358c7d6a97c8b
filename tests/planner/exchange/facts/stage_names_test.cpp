#include "planner/exchange/facts/stage_names.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/refusal.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("Megatron's layout string names the layers of each stage, and is read back") {
  CHECK(megatron_layout({7, 8, 1}) == "Et*7|t*8|tL");
  for (const std::vector<int>& split : {std::vector{4}, {1, 1}, {7, 8, 8, 7}}) {
    CHECK(split_of_megatron(megatron_layout(split), "run") == split);
  }
}

TEST_CASE("repetitions, commas and a closing bar of a layout string are read as Megatron reads them") {
  CHECK(split_of_megatron("E|(t|)*3,t|tL", "run") == std::vector{0, 1, 1, 1, 1, 1});
  CHECK(split_of_megatron("Ettt|(tt|)*2,tL|", "run") == std::vector{3, 2, 2, 1});
  CHECK(split_of_megatron("E,t,(t|(tt)*2|)*1,tL", "run") == std::vector{2, 4, 1});
}

TEST_CASE("a layout string with a fault says where, and that multi-token prediction is not modelled") {
  check_refused<SpecError>([] { split_of_megatron("Et|tx|L", "run.sh"); }, "run.sh", "letter 5");
  check_refused<SpecError>([] { split_of_megatron("Et|(t|", "run.sh"); }, "run.sh", "letter 7");
  check_refused<SpecError>([] { split_of_megatron("Et*|L", "run.sh"); }, "run.sh", "letter 4");
  check_refused<SpecError>([] { split_of_megatron("Et|m|L", "run.sh"); }, "run.sh", "multi-token prediction");
  check_refused<SpecError>([] { split_of_megatron("((((t)*999)*999)*999)*999", "run.sh"); }, "run.sh",
                           "cannot be read");
}

TEST_CASE("torchtitan's modules name the layers one after the other") {
  CHECK(torchtitan_modules({1, 2}) ==
        nlohmann::json::parse(R"([["tok_embeddings", "layers.0"], ["layers.1", "layers.2", "norm", "output"]])"));
  CHECK(split_of_torchtitan(torchtitan_modules({3, 1, 2}), "job") == std::vector{3, 1, 2});
  check_refused<SpecError>(
      [] { split_of_torchtitan(nlohmann::json::parse(R"([["layers.1"], ["layers.0"]])"), "job.toml"); }, "job.toml",
      "where layers.0 follows");
}
