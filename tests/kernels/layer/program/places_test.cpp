// tests/tools/whole/device_memory_test.cpp compares these bytes with the device's own layers.

#include "kernels/layer/program/places.h"

#include <doctest/doctest.h>

#include "kernels/layer/program/storage.h"
#include "tests/kernels/layer/all_kinds.h"

namespace plumb::test {
namespace {

constexpr LayerWork kBytesWork{.microbatch = 2, .sequence = 64};

TransformerLayer block() {
  return {.hidden = 128, .heads = 8, .kv_heads = 4, .head_size = 16, .ffn = 256, .rotary_size = 16};
}

DeviceBytes device_bytes(const Layer& layer, const LayerWork& work) {
  return layer_places(layer_program(layer, work, Machine::kDevice), 2).bytes;
}

}  // namespace

TEST_CASE("a device keeps of a block what is saved, and a place for the gradient of its output") {
  std::int64_t saved = 0;
  for (const SavedTensor& tensor : saved_tensors(layer_program(block(), kBytesWork))) saved += tensor.bytes(2);
  const DeviceBytes bytes = device_bytes(block(), kBytesWork);
  // All of these sizes are multiples of 256 bytes.
  CHECK(bytes.early + bytes.late + bytes.cheap == saved);
  const std::int64_t outputs = 2 * 2 * 64 * 128 * 2 + 2 * 64 * 256 * 2;  // outputs of two norms and of the activation
  CHECK(bytes.cheap == outputs);
}

TEST_CASE("experts that are spread have room for the most rows that a router may send them") {
  TransformerLayer mixture = block();
  mixture.experts = 4;
  mixture.experts_per_token = 2;
  mixture.expert_ffn = 64;
  LayerWork spread = kBytesWork;
  spread.experts.parallel = 2;
  const std::int64_t picks = 2 * 64 * 2, row = 128 * 2;
  // Each rank may send all of its picks, which adds rows of input and output gradient, the gated product and the
  // activation.
  const DeviceBytes whole = device_bytes(mixture, kBytesWork), divided = device_bytes(mixture, spread);
  CHECK(divided.cheap - whole.cheap == picks * 64 * 2);
  CHECK(divided.late - whole.late == picks * (2 * row + 2 * 64 * 2) + 256);  // plus the bounds of the received rows
}

TEST_CASE("tensors that are in use at the same time never lie in the same memory") {
  int neighbours = 0;
  for_each_layer([&](const Layer& layer, const LayerWork& work) {
    const LayerProgram program = layer_program(layer, work, Machine::kDevice);
    const LayerPlaces places = layer_places(program, 2);
    const std::vector<Storage> all = storages(program);
    const auto place_of = [&](const Storage& storage) {
      return places.places[static_cast<std::size_t>(storage.tensors.front())];
    };
    for (const Storage& one : all)
      for (const Storage& other : all) {
        const TensorPlace at = place_of(one), beside = place_of(other);
        const bool is_kept = at.part < MemoryPart::kPassing;
        const bool meet = is_kept || (one.first_step <= other.last_step && other.first_step <= one.last_step);
        if (&one == &other || at.part == MemoryPart::kNone || at.part != beside.part || !meet) continue;
        ++neighbours;
        CHECK((at.offset + bytes_of(program, one, 2) <= beside.offset ||
               beside.offset + bytes_of(program, other, 2) <= at.offset));
      }
  });
  CHECK(neighbours > 1'000);
}

TEST_CASE("sections that follow each other use the same workspace") {
  // In the input gradient, MLP: [T, f]; attention: [T, q], [T, w] and [T, a] in fp32; both: [T, h].
  const TransformerLayer layer = block();
  const std::int64_t rows = 2 * 64, both = rows * 128 * 2, mlp = rows * 256 * 2;
  const std::int64_t attention = rows * 128 * 2 + rows * 256 * 2 + rows * 8 * 4;
  CHECK(device_bytes(layer, kBytesWork).backward_workspace == both + attention);
  CHECK(device_bytes(with_ffn(layer, 2048), kBytesWork).backward_workspace == both + 8 * mlp);
}

TEST_CASE("slices keep the keys and values of their sequences, of which latent attention has those of every head") {
  const auto bytes = [](const TransformerLayer& layer) {
    return sequence_bytes(layer_program(layer, {.microbatch = 2, .sequence = 16}, Machine::kDevice), 2);
  };
  CHECK(bytes(small_llama_block()).kept == 2 * 16 * 2 * 2 * 16 * 2);
  CHECK(bytes(small_llama_block()).gradients == 2 * 16 * 2 * 2 * 16 * 4);
  CHECK(bytes(small_latent_mixture()).kept == 2 * 16 * 8 * (24 + 16) * 2);
  CHECK(sequence_bytes(layer_program(HeadLayer{.vocab = 100, .hidden = 64}, {}, Machine::kDevice), 2).kept == 0);
}

}  // namespace plumb::test
