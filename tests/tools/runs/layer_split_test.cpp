#include "tools/runs/layer_split.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

std::vector<std::size_t> sizes(const std::vector<std::vector<Layer>>& parts) {
  std::vector<std::size_t> counts;
  for (const std::vector<Layer>& part : parts) counts.push_back(part.size());
  return counts;
}

using Sizes = std::vector<std::size_t>;

/// Returns an input, linear layers with these numbers of parameters, and a loss.
std::vector<Layer> chain(const std::vector<std::int64_t>& parameters) {
  std::vector<Layer> model = {InputLayer{}};
  for (const std::int64_t count : parameters) model.push_back(LinearLayer{.in = 1, .out = count, .bias = false});
  model.push_back(LossLayer{.width = 1});
  return model;
}

}  // namespace

TEST_CASE("uniform stages have as many layers as can be, and both ends stay with their neighbours") {
  CHECK(sizes(split_layers(chain({1, 1, 1, 1, 1}), 2, "uniform")) == Sizes{1 + 3, 2 + 1});
  CHECK(sizes(split_layers(cnn_model(), 3, "uniform")) == Sizes{1 + 2, 2, 2 + 1});
  CHECK(sizes(split_layers(llama_model(4), 3, "uniform")) == Sizes{2, 2, 2});
}

TEST_CASE("stages of nearly equal parameters have the least largest sum") {
  // The split is 9 | 1 1 1 1 | 5 3. Its largest sum is 9, and no split of a 9 beats it.
  CHECK(sizes(split_layers(chain({9, 1, 1, 1, 1, 5, 3}), 3, "parameters"))[0] == 1 + 1);
  // The split is 4 4 | 4 4 | 8.
  CHECK(sizes(split_layers(chain({4, 4, 4, 4, 8}), 3, "parameters")) == Sizes{1 + 2, 2, 1 + 1});
}

TEST_CASE("stages share the layers whose kind an expression finds, whatever its case") {
  // The convolutions are at 1 and 3 of: input, convolution, pooling, convolution, pooling, linear, linear, loss.
  const std::vector<std::vector<Layer>> parts = split_layers(cnn_model(), 2, "type:CONV");
  for (const std::vector<Layer>& part : parts)
    CHECK(std::ranges::count_if(
              part, [](const Layer& layer) { return std::holds_alternative<ConvolutionLayer>(layer); }) == 1);
}

TEST_CASE("the user's own numbers are kept") {
  CHECK(sizes(split_layers(cnn_model(), 3, "1,4,1")) == Sizes{1 + 1, 4, 1 + 1});
}

TEST_CASE("a split that leaves a stage empty, or places too much, is refused with a sentence") {
  const auto refuses = [](const char* rule, const char* sentence, int stages = 3) {
    CHECK_THROWS_WITH_AS(split_layers(cnn_model(), stages, rule), sentence, SpecError);
  };
  refuses("uniform", "7 stages cannot share 6 layers without an empty one: use fewer ranks or chunks", 7);
  refuses("3,0,3", "split 3,0,3 leaves stage 1 empty: give each stage at least one layer");
  refuses("3,3", "split 3,3 names 2 stages, and there are 3: give one number for each");
  refuses("3,3,3", "split 3,3,3 places 9 layers, and the model has 6: make it sum up to 6");
  refuses("evenly",
          "split \"evenly\": give uniform, parameters, type:REGEX, or a number of layers for each stage as in 3,2,2");
  refuses("type:transformer",
          "split type:transformer: the model has no layer of such a kind; its first is of kind convolution");
  refuses("type:(", "split type:(: \"(\" is no regular expression (RE2's: no look-ahead, no references back): mend it");
}

}  // namespace plumb::test
