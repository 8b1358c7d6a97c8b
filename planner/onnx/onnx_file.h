#pragma once
// An ONNX file as values: its nodes in computing order, its weights' shapes, its inputs and outputs.
//
//   const OnnxFile file = parse_onnx(bytes, "model.onnx");
//
// Only shapes and small whole numbers of weights are kept, so that a file whose weights lie elsewhere is read as well.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/graph/graph_node.h"

namespace plumb { inline namespace planner {

/// A weight or a constant.
struct OnnxTensor {
  TensorShape shape;
  bool numbers = true;                 ///< floating point; false: whole numbers and truth values
  std::vector<std::int64_t> integers;  ///< the values of at most 2^12 whole numbers; otherwise empty
  double first = 0;                    ///< the first floating-point value, where the file holds it as such
  bool external = false;               ///< the values lie in another file
};

struct OnnxAttribute {
  std::int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<std::int64_t> integers;
  std::vector<OnnxTensor> tensors;  ///< none or one
};

struct OnnxNode {
  std::string name;                 ///< the file's, or that of its first output
  std::string op;                   ///< with its domain where that is not ONNX's own: "com.microsoft.FusedMatMul"
  std::vector<std::string> inputs;  ///< names of tensors; empty: left out
  std::vector<std::string> outputs;
  std::map<std::string, OnnxAttribute> attributes;

  /// Return the attribute, or `fallback` where the node has none of that name.
  std::int64_t integer_or(const std::string& key, std::int64_t fallback) const;
  std::string text_or(const std::string& key, const std::string& fallback) const;
  std::vector<std::int64_t> integers_or(const std::string& key, const std::vector<std::int64_t>& fallback) const;
};

/// A size of an input, which may have only a name.
struct OnnxDimension {
  std::int64_t size = 0;  ///< 0: not known
  std::string name;
};

struct OnnxInput {
  std::string name;
  bool numbers = true;  ///< as OnnxTensor::numbers
  std::vector<OnnxDimension> shape;
};

struct OnnxFile {
  std::string name;             ///< of the graph
  std::vector<OnnxNode> nodes;  ///< each behind those whose outputs it reads
  std::map<std::string, OnnxTensor> weights;
  std::vector<OnnxInput> inputs;  ///< without weights that are listed as inputs
  std::vector<std::string> outputs;
  std::map<std::string, std::vector<OnnxDimension>> stated;  ///< shapes that the file states for tensors within
  std::string external;                                      ///< a file that holds weights; empty: there is none
};

/// Reads a file. Throws SpecError naming `file` and the remedy: bytes that are cut off or no ONNX, no graph, no output,
/// more than 2^14 nodes, a tensor that two nodes make or none does, nodes that wait for each other in a cycle, control
/// flow (If, Loop, Scan), a negative size.
OnnxFile parse_onnx(std::string_view bytes, const std::string& file);

}}  // namespace plumb::planner
