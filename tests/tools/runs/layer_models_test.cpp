#include "tools/runs/layer_models.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "executor/training/run.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "tools/runs/layer_split.h"

namespace plumb::test {
namespace {

std::int64_t parameters_of(const std::string& name, std::int64_t classes) {
  std::int64_t count = 0;
  for (const Layer& layer : layer_model(name, classes)) count += parameter_count(layer);
  return count;
}

}  // namespace

TEST_CASE("networks have the parameters of their papers") {
  // With 1000 classes, Krizhevsky et al. 2012 have 60 million (with their two groups 60,965,224), and Simonyan &
  // Zisserman 2015, table 2, have 133, 138 and 144 million for A, D and E.
  CHECK(parameters_of("alexnet", 1000) == 60'965'224);
  CHECK(parameters_of("vgg-11", 1000) == 132'863'336);
  CHECK(parameters_of("vgg-16", 1000) == 138'357'544);
  CHECK(parameters_of("vgg-19", 1000) == 143'667'240);
}

TEST_CASE("AlexNet and VGG on 224 x 224 take a step through two stages") {
  std::vector<std::string> networks = {"alexnet", "vgg-11"};
  if (std::getenv("PLUMB_ALL_NETWORKS") != nullptr) networks.insert(networks.end(), {"vgg-16", "vgg-19"});
  for (const std::string& network : networks) {
    CAPTURE(network);
    const std::vector<Layer> model = layer_model(network, 10);
    RunSpec spec{.stage_layers = split_layers(model, 2, "parameters"),
                 .grid = {.pipeline = 2},
                 .schedule = lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 1})),
                 .microbatch = 1,
                 .sequence = 1,
                 .optimizer = Sgd{},
                 .samples = {.shape = std::get<InputLayer>(model.front()), .outputs = 10}};
    const RunResult result = run(spec);
    CHECK(std::isfinite(result.losses.at(0)));
    std::int64_t weight_bytes = 0;
    for (const ParameterBytes& bytes : result.parameter_bytes) weight_bytes += bytes.weights;
    CHECK(weight_bytes == 4 * parameters_of(network, 10));
  }
}

}  // namespace plumb::test
