#include "planner/onnx/shape_inference.h"

#include <doctest/doctest.h>

#include "tests/planner/refusal.h"

namespace plumb::test { namespace {

using Sizes = std::vector<std::int64_t>;

OnnxValue numbers(const TensorShape& shape) {
  return {.shape = shape};
}

OnnxValue integers(const Sizes& values) {
  return {.shape = {std::ssize(values)}, .numbers = false, .integers = values};
}

struct Rule {
  const char* op;
  std::vector<OnnxValue> inputs;
  std::map<std::string, Sizes> lists;
  std::map<std::string, std::int64_t> attributes;
  TensorShape expected;
};

std::optional<std::vector<OnnxValue>> outputs_of(const Rule& rule, std::size_t outputs = 1) {
  OnnxNode node{.name = "node", .op = rule.op, .outputs = std::vector<std::string>(outputs, "y")};
  for (const auto& [key, value] : rule.lists) node.attributes[key].integers = value;
  for (const auto& [key, value] : rule.attributes) node.attributes[key].integer = value;
  std::vector<const OnnxValue*> inputs;
  for (const OnnxValue& input : rule.inputs) inputs.push_back(&input);
  return infer_shapes(node, inputs, "test.onnx");
}

TEST_CASE("each operator has the shape that ONNX's specification gives") {
  const OnnxValue image = numbers({2, 3, 9, 9}), small = numbers({1, 1, 3, 3});
  const std::vector<Rule> rules = {
      {"Conv", {image, numbers({8, 3, 3, 3})}, {{"strides", {2, 2}}, {"pads", {1, 1, 1, 1}}}, {}, {2, 8, 5, 5}},
      {"Conv", {image, numbers({6, 1, 3, 3})}, {{"dilations", {2, 2}}}, {{"group", 3}}, {2, 6, 5, 5}},
      // The examples of ConvTranspose in ONNX's documentation.
      {"ConvTranspose", {small, numbers({1, 2, 3, 3})}, {}, {}, {1, 2, 5, 5}},
      {"ConvTranspose", {numbers({1, 1, 3}), numbers({1, 2, 3})}, {}, {}, {1, 2, 5}},
      {"ConvTranspose", {numbers({1, 1, 3, 4, 5}), numbers({1, 2, 3, 3, 3})}, {}, {}, {1, 2, 5, 6, 7}},
      {"ConvTranspose",
       {small, numbers({1, 2, 3, 3})},
       {{"strides", {3, 2}}, {"output_shape", {10, 8}}},
       {},
       {1, 2, 10, 8}},
      {"ConvTranspose",
       {small, numbers({1, 2, 3, 3})},
       {{"strides", {3, 2}}, {"output_padding", {1, 1}}},
       {},
       {1, 2, 10, 8}},
      {"ConvTranspose", {small, numbers({1, 1, 2, 2})}, {{"dilations", {2, 2}}}, {}, {1, 1, 5, 5}},
      {"ConvTranspose",
       {small, numbers({1, 2, 3, 3})},
       {{"strides", {3, 2}}, {"pads", {1, 2, 1, 2}}},
       {},
       {1, 2, 7, 3}},
      {"MaxPool", {image}, {{"kernel_shape", {2, 2}}, {"strides", {2, 2}}}, {}, {2, 3, 4, 4}},
      {"MaxPool", {image}, {{"kernel_shape", {2, 2}}, {"strides", {2, 2}}}, {{"ceil_mode", 1}}, {2, 3, 5, 5}},
      {"GlobalAveragePool", {image}, {}, {}, {2, 3, 1, 1}},
      {"Flatten", {image}, {}, {}, {2, 243}},
      {"Flatten", {image}, {}, {{"axis", 2}}, {6, 81}},
      {"MatMul", {numbers({2, 4, 5, 6}), numbers({6, 7})}, {}, {}, {2, 4, 5, 7}},
      {"MatMul", {numbers({4, 5, 6}), numbers({2, 1, 6, 7})}, {}, {}, {2, 4, 5, 7}},
      {"MatMul", {numbers({5, 6}), numbers({6})}, {}, {}, {5}},
      {"Gemm", {numbers({5, 6}), numbers({7, 6})}, {}, {{"transB", 1}}, {5, 7}},
      {"Add", {numbers({2, 1, 5}), numbers({4, 1})}, {}, {}, {2, 4, 5}},
      {"Reshape", {numbers({2, 12}), integers({0, -1, 4})}, {}, {}, {2, 3, 4}},
      {"Transpose", {numbers({2, 3, 4})}, {{"perm", {0, 2, 1}}}, {}, {2, 4, 3}},
      {"Concat", {numbers({2, 3}), numbers({2, 5})}, {}, {{"axis", -1}}, {2, 8}},
      {"Gather", {numbers({10, 4}), numbers({2, 3})}, {}, {}, {2, 3, 4}},
      {"Gather", {numbers({10, 4}), {.numbers = false}}, {}, {{"axis", 1}}, {10}},
      {"Slice", {numbers({2, 10}), integers({1}), integers({-1}), integers({1}), integers({2})}, {}, {}, {2, 4}},
      {"Slice", {numbers({2, 10}), integers({9}), integers({-100}), integers({1}), integers({-1})}, {}, {}, {2, 10}},
      {"Squeeze", {numbers({2, 1, 3, 1}), integers({1})}, {}, {}, {2, 3, 1}},
      {"Unsqueeze", {numbers({2, 3}), integers({0, -1})}, {}, {}, {1, 2, 3, 1}},
      {"Expand", {numbers({1, 3}), integers({2, 1})}, {}, {}, {2, 3}},
      {"ReduceMean", {numbers({2, 3, 4})}, {{"axes", {-1}}}, {}, {2, 3, 1}},
      {"ReduceMean", {numbers({2, 3, 4})}, {{"axes", {-1}}}, {{"keepdims", 0}}, {2, 3}},
      {"Pad", {numbers({2, 3}), integers({0, 1, 0, 2})}, {}, {}, {2, 6}},
      {"Tile", {numbers({2, 3}), integers({1, 4})}, {}, {}, {2, 12}},
      {"LSTM", {numbers({20, 1, 8}), numbers({2, 64, 8}), numbers({2, 64, 16})}, {}, {}, {20, 2, 1, 16}},
      {"GRU", {numbers({3, 20, 8}), numbers({1, 48, 8}), numbers({1, 48, 16})}, {}, {{"layout", 1}}, {3, 20, 1, 16}},
      {"Softmax", {numbers({2, 3})}, {}, {{"axis", -1}}, {2, 3}}};
  for (const Rule& rule : rules) {
    CAPTURE(rule.op);
    const auto outputs = outputs_of(rule);
    REQUIRE(outputs.has_value());
    CHECK(outputs->front().shape == rule.expected);
    CHECK(outputs->front().numbers);
  }
  const auto halves = outputs_of({"Split", {numbers({2, 9})}, {}, {{"axis", 1}}, {}}, 2);
  REQUIRE(halves.has_value());
  CHECK(halves->front().shape == TensorShape{2, 5});
  CHECK(halves->back().shape == TensorShape{2, 4});
}

TEST_CASE("whole numbers that follow from shapes are known") {
  const OnnxValue x = numbers({2, 12, 64});
  const auto shape = outputs_of({"Shape", {x}, {}, {}, {}});
  REQUIRE(shape.has_value());
  CHECK(shape->front().integers == Sizes{2, 12, 64});
  const auto last = outputs_of({"Gather", {shape->front(), integers({-1})}, {}, {}, {}});
  CHECK(last->front().integers == Sizes{64});
  const auto half = outputs_of({"Div", {last->front(), integers({2})}, {}, {}, {}});
  CHECK(half->front().integers == Sizes{32});
  const auto target = outputs_of({"Concat", {integers({2, 12, 2}), half->front()}, {}, {{"axis", 0}}, {}});
  CHECK(outputs_of({"Reshape", {x, target->front()}, {}, {}, {}})->front().shape == TensorShape{2, 12, 2, 32});
  const auto range = outputs_of({"Range", {integers({0}), integers({5}), integers({2})}, {}, {}, {}});
  CHECK(range->front().integers == Sizes{0, 2, 4});
}

TEST_CASE("shapes that do not fit are refused, and operators that are not known have none") {
  const auto refuse = [](const Rule& rule, const std::string& says) {
    check_refused<SpecError>([&] { outputs_of(rule); }, "test.onnx", says);
  };
  refuse({"MatMul", {numbers({2, 3}), numbers({4, 5})}, {}, {}, {}}, "no product");
  refuse({"Add", {numbers({2, 3}), numbers({2})}, {}, {}, {}}, "do not fit together");
  refuse({"Reshape", {numbers({2, 3}), integers({4, -1})}, {}, {}, {}}, "do not fill");
  refuse({"Conv", {numbers({1, 3, 2, 2}), numbers({8, 3, 5, 5})}, {}, {}, {}}, "does not fit into");
  refuse({"Conv", {numbers({1, 4, 9, 9}), numbers({8, 3, 5, 5})}, {}, {}, {}}, "do not fit the image");
  refuse({"Transpose", {numbers({2, 3})}, {{"perm", {0, 2}}}, {}, {}}, "no axis 2");
  CHECK(!outputs_of({"com.example.Own", {numbers({2})}, {}, {}, {}}).has_value());
  CHECK(!outputs_of({"Reshape", {numbers({6}), {.shape = {2}, .numbers = false}}, {}, {}, {}}).has_value());
}

}}  // namespace plumb::test
