#include "planner/spec/framework_split.h"

#include <numeric>

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("Megatron's stages are even, or count the tables as layers where that makes them even") {
  CHECK(framework_split(StageSplit::kEven, 32, 4) == std::vector{8, 8, 8, 8});
  CHECK(framework_split(StageSplit::kEven, 30, 4) == std::vector{7, 8, 8, 7});
  CHECK(framework_split(StageSplit::kEven, 31, 4) == std::vector{8, 8, 8, 7});
  CHECK(!framework_split(StageSplit::kEven, 33, 4));
  CHECK(framework_split(StageSplit::kEven, 33, 1) == std::vector{33});
}

TEST_CASE("torchtitan's ends hold a layer fewer, and the first parts what is left over") {
  CHECK(framework_split(StageSplit::kEndsAsLayers, 32, 4) == std::vector{8, 9, 8, 7});
  CHECK(framework_split(StageSplit::kEndsAsLayers, 126, 16)->front() == 7);
  CHECK(framework_split(StageSplit::kEndsAsLayers, 126, 16)->at(1) == 8);
  CHECK(framework_split(StageSplit::kEndsAsLayers, 126, 16)->back() == 7);
  CHECK(framework_split(StageSplit::kEndsAsLayers, 6, 1) == std::vector{6});
  CHECK(framework_split(StageSplit::kEndsAsLayers, 6, 8) == std::vector{0, 1, 1, 1, 1, 1, 1, 0});
}

TEST_CASE("no layer is lost, and no inner part is empty") {
  for (const StageSplit rule : {StageSplit::kEven, StageSplit::kEndsAsLayers}) {
    for (int layers = 1; layers < 40; ++layers) {
      for (int parts = 1; parts <= layers; ++parts) {
        const auto split = framework_split(rule, layers, parts);
        if (!split) continue;
        CHECK(std::accumulate(split->begin(), split->end(), 0) == layers);
        for (std::size_t part = 1; part + 1 < split->size(); ++part) CHECK(split->at(part) > 0);
      }
    }
  }
}

}  // namespace plumb::test
