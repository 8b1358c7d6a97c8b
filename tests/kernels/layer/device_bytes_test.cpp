// tests/tools/device_memory_test.cpp compares these bytes with the device's own layers.

#include "kernels/layer/layer.h"

#include <doctest/doctest.h>

namespace plumb::test {
namespace {

constexpr LayerWork kBytesWork{.microbatch = 2, .sequence = 64};

TransformerLayer block() {
  return {.hidden = 128, .heads = 8, .kv_heads = 4, .head_size = 16, .ffn = 256, .rotary_size = 16};
}

}  // namespace

TEST_CASE("a device keeps of a block what is saved, and a place for the gradient of its output") {
  std::int64_t saved = 0;
  for (const SavedTensor& tensor : saved_tensors(block(), kBytesWork))
    saved += tensor.elements * (tensor.single_precision ? 4 : 2);
  const DeviceBytes bytes = device_bytes(block(), kBytesWork, 2);
  // All of these sizes are multiples of 256 bytes.
  CHECK(bytes.early + bytes.late + bytes.cheap == saved + 2 * 64 * 128 * 2);
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
  const DeviceBytes whole = device_bytes(mixture, kBytesWork, 2), divided = device_bytes(mixture, spread, 2);
  CHECK(divided.cheap - whole.cheap == picks * 64 * 2);
  CHECK(divided.late - whole.late == picks * (2 * row + 2 * 64 * 2) + 256);  // plus the bounds of the received rows
}

}  // namespace plumb::test
