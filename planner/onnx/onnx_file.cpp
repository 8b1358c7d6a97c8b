#include "planner/onnx/onnx_file.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include <onnx.pb.h>

#include "schedules/error.h"
#include "schedules/limits.h"

namespace plumb { inline namespace planner {
namespace {

namespace proto = plumb_onnx;

constexpr std::int64_t kMostKept = 1 << 12;

// Types of elements, by TensorProto.DataType.
constexpr int kFloat = 1, kInt32 = 6, kInt64 = 7, kBool = 9, kHalf = 10, kDouble = 11, kBfloat16 = 16, kFirstFp8 = 17;

bool is_number(int type) {
  return type == kFloat || type == kHalf || type == kDouble || type == kBfloat16 || (type >= kFirstFp8 && type <= 20);
}

[[noreturn]] void fail(const std::string& file, const std::string& message) {
  throw SpecError(fmt::format("{}: {}", file, message));
}

template <typename Number>
std::vector<std::int64_t> raw_integers(const std::string& bytes) {
  std::vector<std::int64_t> values;
  for (std::size_t at = 0; at + sizeof(Number) <= bytes.size(); at += sizeof(Number)) {
    Number value{};
    std::memcpy(&value, bytes.data() + at, sizeof value);
    values.push_back(static_cast<std::int64_t>(value));
  }
  return values;
}

std::vector<std::int64_t> integers_of(const proto::TensorProto& tensor) {
  if (tensor.int64_data_size() > 0) return {tensor.int64_data().begin(), tensor.int64_data().end()};
  if (tensor.int32_data_size() > 0) return {tensor.int32_data().begin(), tensor.int32_data().end()};
  if (tensor.data_type() == kInt64) return raw_integers<std::int64_t>(tensor.raw_data());
  if (tensor.data_type() == kInt32) return raw_integers<std::int32_t>(tensor.raw_data());
  if (tensor.data_type() == kBool) return raw_integers<std::uint8_t>(tensor.raw_data());
  return {};
}

double first_number(const proto::TensorProto& tensor) {
  if (tensor.data_type() != kFloat) return 0;
  if (tensor.float_data_size() > 0) return tensor.float_data(0);
  float value = 0;
  if (tensor.raw_data().size() >= sizeof value) std::memcpy(&value, tensor.raw_data().data(), sizeof value);
  return value;
}

OnnxTensor tensor_of(const proto::TensorProto& from, const std::string& file) {
  OnnxTensor tensor{.numbers = is_number(from.data_type()), .external = from.data_location() == 1};
  for (const std::int64_t size : from.dims()) {
    if (size < 0) fail(file, fmt::format("weight {} has a size of {}: export the model again", from.name(), size));
    tensor.shape.push_back(size);
  }
  constexpr std::int64_t kLargest = std::int64_t{1} << 40;
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) {
    if (size > kLargest || count * size > kLargest)
      fail(file, fmt::format("weight {} is larger than any memory: check its sizes", from.name()));
    count *= size;
  }
  if (!tensor.external && !tensor.numbers && count <= kMostKept) tensor.integers = integers_of(from);
  if (std::ssize(tensor.integers) != count) tensor.integers.clear();
  if (!tensor.external && tensor.numbers) tensor.first = first_number(from);
  return tensor;
}

OnnxNode node_of(const proto::NodeProto& from, const std::string& file) {
  OnnxNode node{.name = from.name(), .op = from.op_type()};
  if (!from.domain().empty() && from.domain() != "ai.onnx") node.op = from.domain() + "." + node.op;
  node.inputs.assign(from.input().begin(), from.input().end());
  node.outputs.assign(from.output().begin(), from.output().end());
  if (node.outputs.empty()) fail(file, fmt::format("node {} ({}) makes nothing: remove it", node.name, node.op));
  if (node.name.empty()) node.name = node.outputs.front();
  for (const proto::AttributeProto& attribute : from.attribute()) {
    if (attribute.has_g()) {
      fail(file, fmt::format("node {} ({}) chooses its nodes while it runs, and a plan needs them before: export the "
                             "model with fixed control flow",
                             node.name, node.op));
    }
    OnnxAttribute value{.integer = attribute.i(), .number = attribute.f(), .text = attribute.s()};
    value.integers.assign(attribute.ints().begin(), attribute.ints().end());
    if (attribute.has_t()) value.tensors.push_back(tensor_of(attribute.t(), file));
    node.attributes[attribute.name()] = std::move(value);
  }
  return node;
}

std::vector<OnnxDimension> shape_of(const proto::ValueInfoProto& value, const std::string& file) {
  std::vector<OnnxDimension> shape;
  for (const auto& size : value.type().tensor_type().shape().dim()) {
    if (size.dim_value() < 0)
      fail(file, fmt::format("{} has a size of {}: export the model again", value.name(), size.dim_value()));
    shape.push_back({.size = size.dim_value(), .name = size.dim_param()});
  }
  return shape;
}

/// Returns the nodes, each behind those that make its inputs; the file's order is kept where that is possible.
std::vector<OnnxNode> in_order(std::vector<OnnxNode> nodes, const OnnxFile& graph, const std::string& file) {
  std::map<std::string, int> makers;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].outputs)
      if (!name.empty() && !makers.emplace(name, static_cast<int>(i)).second)
        fail(file, fmt::format("two nodes make the tensor {}: rename one", name));
  }
  std::set<std::string> given;
  for (const OnnxInput& input : graph.inputs) given.insert(input.name);
  for (const std::string& output : graph.outputs)
    if (!makers.contains(output) && !given.contains(output) && !graph.weights.contains(output))
      fail(file, fmt::format("no node makes the output {}: export the model again", output));
  std::vector<int> missing(nodes.size(), 0);
  std::vector<std::vector<int>> readers(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].inputs) {
      if (name.empty() || given.contains(name) || graph.weights.contains(name)) continue;
      const auto maker = makers.find(name);
      if (maker == makers.end())
        fail(file, fmt::format("node {} reads {}, which no node makes: export the model again", nodes[i].name, name));
      ++missing[i];
      readers[maker->second].push_back(static_cast<int>(i));
    }
  }
  std::set<int> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (missing[i] == 0) ready.insert(static_cast<int>(i));
  std::vector<OnnxNode> ordered;
  while (!ready.empty()) {
    const int next = *ready.begin();
    ready.erase(ready.begin());
    for (const int reader : readers[next])
      if (--missing[reader] == 0) ready.insert(reader);
    ordered.push_back(std::move(nodes[next]));
  }
  if (ordered.size() < nodes.size()) {
    const auto waits = std::ranges::find_if(missing, [](int count) { return count > 0; });
    fail(file, fmt::format("the nodes form a cycle through {}, and none of them can come first: export the model again",
                           nodes[static_cast<std::size_t>(waits - missing.begin())].name));
  }
  return ordered;
}

void read_inputs_and_outputs(const proto::GraphProto& from, const std::string& file, OnnxFile& graph) {
  for (const proto::ValueInfoProto& input : from.input()) {
    if (graph.weights.contains(input.name())) continue;
    graph.inputs.push_back({.name = input.name(),
                            .numbers = is_number(input.type().tensor_type().elem_type()),
                            .shape = shape_of(input, file)});
  }
  for (const proto::ValueInfoProto& output : from.output()) graph.outputs.push_back(output.name());
  for (const auto* values : {&from.value_info(), &from.output()})
    for (const proto::ValueInfoProto& value : *values)
      if (value.type().tensor_type().has_shape()) graph.stated[value.name()] = shape_of(value, file);
}

}  // namespace

std::int64_t OnnxNode::integer_or(const std::string& key, std::int64_t fallback) const {
  const auto found = attributes.find(key);
  return found == attributes.end() ? fallback : found->second.integer;
}

std::string OnnxNode::text_or(const std::string& key, const std::string& fallback) const {
  const auto found = attributes.find(key);
  return found == attributes.end() ? fallback : found->second.text;
}

std::vector<std::int64_t> OnnxNode::integers_or(const std::string& key,
                                                const std::vector<std::int64_t>& fallback) const {
  const auto found = attributes.find(key);
  return found == attributes.end() ? fallback : found->second.integers;
}

OnnxFile parse_onnx(std::string_view bytes, const std::string& file) {
  proto::ModelProto model;
  if (bytes.empty() || !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    fail(file, "this is no ONNX model, or its end is missing: export or copy it again");
  if (!model.has_graph() || model.graph().node_size() == 0)
    fail(file, "there is no node in it: export the model, not its weights alone");
  const proto::GraphProto& from = model.graph();
  if (static_cast<std::size_t>(from.node_size()) > kMostGraphNodes) {
    fail(file, fmt::format("{} nodes are more than the {} that a graph may have: export a part of the model",
                           from.node_size(), kMostGraphNodes));
  }
  OnnxFile graph{.name = from.name()};
  for (const proto::TensorProto& weight : from.initializer()) {
    graph.weights[weight.name()] = tensor_of(weight, file);
    if (weight.data_location() != 1) continue;
    for (const auto& entry : weight.external_data())
      if (entry.key() == "location" && graph.external.empty()) graph.external = entry.value();
  }
  read_inputs_and_outputs(from, file, graph);
  if (graph.outputs.empty()) fail(file, "the graph has no output: name the tensors that a loss reads");
  std::vector<OnnxNode> nodes;
  for (const proto::NodeProto& node : from.node()) nodes.push_back(node_of(node, file));
  graph.nodes = in_order(std::move(nodes), graph, file);
  return graph;
}

}}  // namespace plumb::planner
