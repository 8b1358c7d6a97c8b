#include "executor/training/check_model.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

std::string refusal(const std::vector<Layer>& model, RunSpec spec) {
  try {
    require_trainable(model, spec);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string refusal(const std::vector<Layer>& model) {
  RunSpec spec = one_rank(cnn_model(), 1);
  spec.samples = samples_for(cnn_model());
  return refusal(model, spec);
}

}  // namespace

TEST_CASE("networks of images and of vectors are trainable as they are") {
  for (const std::vector<Layer>& model : {cnn_model(), mlp_model()}) CHECK(refusal(model, one_rank(model, 1)).empty());
}

TEST_CASE("layers that do not fit each other are refused by their number") {
  std::vector<Layer> model = cnn_model();
  std::get<LinearLayer>(model[5]).in = 13;
  CHECK(refusal(model) == "layer 5 takes 13 numbers of a sample, and the layer before gives 12");
  model = cnn_model();
  std::get<PoolingLayer>(model[2]).height = 7;
  std::get<PoolingLayer>(model[2]).width = 9;
  CHECK(refusal(model) == "layer 2 takes images of 7 x 9 x 8, and the layer before gives 9 x 7 x 8");
  model = cnn_model();
  std::get<ConvolutionLayer>(model[1]).kernel = 12;
  CHECK(refusal(model).starts_with("layer 1: windows of 12"));
  model = cnn_model();
  std::get<ConvolutionLayer>(model[3]).groups = 4;
  CHECK(refusal(model) == "layer 3: 4 groups must divide 8 channels and 6 filters");
  model = cnn_model();
  std::get<LinearLayer>(model[5]).dropout = 1;
  CHECK(refusal(model) == "layer 5: dropout 1; give 0 or more and less than 1");
  model = cnn_model();
  model.insert(model.begin() + 5, EmbeddingLayer{.vocab = 3, .hidden = 12});
  CHECK(refusal(model).starts_with("layer 5 takes 0 numbers"));
}

TEST_CASE("a layer that hands no gradient back is refused anywhere but behind the input") {
  std::vector<Layer> model = cnn_model();
  std::get<LinearLayer>(model[6]).input_grad = false;
  CHECK(refusal(model) == "layer 6 hands no gradient back: it must be the first behind the input and on its stage");
  RunSpec apart = one_rank(cnn_model(), 1);
  apart.stage_layers[0].resize(1);
  CHECK(refusal(cnn_model(), apart).starts_with("layer 1 hands no gradient back"));
}

TEST_CASE("data that do not suit the model are refused") {
  RunSpec spec = one_rank(cnn_model(), 1);
  spec.samples.outputs = 5;
  CHECK(refusal(cnn_model(), spec) == "samples of 9 x 7 x 3 with 5 outputs, and the model takes 9 x 7 x 3 and gives 4");
  spec = one_rank(cnn_model(), 1);
  spec.samples.images = {.height = 1, .width = 1, .channels = 3, .pixels = {1, 2, 3}, .labels = {9}};
  CHECK(refusal(cnn_model(), spec) == "a label is 9, and the model has 4 classes");
  spec = one_rank(mlp_model(), 1);
  spec.samples.images = {.height = 1, .width = 1, .channels = 1, .pixels = {1}, .labels = {1}};
  CHECK(refusal(mlp_model(), spec) == "images have labels, and the model's loss is a squared error: give no images");
  spec = one_rank(mlp_model(), 1);
  spec.sequence = 4;
  CHECK(refusal(mlp_model(), spec) == "sequences of 4 tokens: samples are no sequences, give 1");
}

}  // namespace plumb::test
