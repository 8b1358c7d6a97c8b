#include "schedules/nearest_name.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("the nearest name is the one with the fewest edits, case aside, the first of equals") {
  CHECK(nearest_name("hiden", {"heads", "hidden", "layers"}) == "hidden");
  CHECK(nearest_name("GPIPE", {"1f1b", "gpipe"}) == "gpipe");
  CHECK(nearest_name("paln", {"ln", "plan"}) == "plan");  // an exchange is one edit
  CHECK(nearest_name("x", {}).empty());
}

TEST_CASE("what is like no candidate has no nearest") {
  CHECK(nearest_name("zz", {"ab", "cd"}).empty());
  CHECK(nearest_name("q", {"b", "f"}).empty());
  CHECK(nearest_name(".", {"mlp"}).empty());
  CHECK(nearest_name("model.onnx", {"alexnet", "mlp"}).empty());
  CHECK(nearest_name(std::string(1'000'000, 'a'), {"a"}).empty());
}

TEST_CASE("a part of a name is near to it") {
  CHECK(nearest_name("gem", {"cluster.memory", "cluster.device.gemm_efficiency"}) == "cluster.device.gemm_efficiency");
  CHECK(nearest_name("1f1b-flush", {"gpipe", "1f1b"}) == "1f1b");
}

TEST_CASE("what was meant is asked, or else what there is") {
  CHECK(did_you_mean("gpus_", {"gpus", "nodes"}) == "did you mean \"gpus\"?");
  CHECK(did_you_mean("q", {"f", "b"}) == "give one of f, b");
  CHECK(did_you_mean("q", {}) == "there are none");
  CHECK(did_you_mean("?", std::vector<std::string>(30, "long")).ends_with("long and 6 more"));
}

}  // namespace plumb::test
