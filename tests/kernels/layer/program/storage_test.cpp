#include "kernels/layer/program/storage.h"

#include <doctest/doctest.h>

#include "tests/kernels/layer/all_kinds.h"

namespace plumb::test {
namespace {

const Storage& storage_with(const std::vector<Storage>& all, const LayerProgram& program, const char* name) {
  for (const Storage& storage : all)
    for (const int tensor : storage.tensors)
      if (program.tensors[static_cast<std::size_t>(tensor)].name == name) return storage;
  FAIL("no storage has " << name);
  return all.front();
}

}  // namespace

TEST_CASE("a gradient has the storage of the tensor whose place it takes, until the last step that uses either") {
  const LayerProgram program = layer_program(MlpLayer{.hidden = 4, .ffn = 8}, {.microbatch = 3});
  const std::vector<Storage> all = storages(program);
  const Storage& up = storage_with(all, program, "up gradient");
  REQUIRE(up.tensors.size() == 2);
  CHECK(program.tensors[static_cast<std::size_t>(up.tensors.front())].name == "up");
  CHECK(up.is_kept());
  CHECK(up.last_pass == Pass::kWeightGrad);
  CHECK(bytes_of(program, up, 2) == 3 * 8 * 2);
  const Storage& passing = storage_with(all, program, "activation gradient");
  CHECK(passing.first_pass == Pass::kInputGrad);
  CHECK(passing.last_step == passing.first_step + 1);
}

TEST_CASE("what others hand over is in use from the pass in which they do, and what they get to its end") {
  const LayerProgram program = layer_program(LossLayer{.width = 10}, {.microbatch = 3});
  const std::vector<Storage> all = storages(program);
  const Storage& predictions = storage_with(all, program, "gradient of predictions");
  CHECK(handed_tensor(program, predictions) == program.input);
  CHECK(predictions.is_kept());  // the layer before gets the gradient, though no step reads it
  CHECK(predictions.last_pass == Pass::kInputGrad);

  const LayerProgram embedding = layer_program(EmbeddingLayer{.vocab = 10, .hidden = 4}, {.microbatch = 3});
  const Storage gradient = storage_with(storages(embedding), embedding, "output gradient");
  CHECK(gradient.first_pass == Pass::kInputGrad);
  CHECK(gradient.last_pass == Pass::kWeightGrad);
}

TEST_CASE("memory of others is not counted") {
  const LayerProgram program = layer_program(LossLayer{.width = 10}, {.microbatch = 3}, Machine::kDevice);
  for (const Storage& storage : storages(program))
    for (const int tensor : storage.tensors)
      CHECK(program.tensors[static_cast<std::size_t>(tensor)].origin != Origin::kHeld);
}

}  // namespace plumb::test
