#pragma once
// ONNX models on the command line: a file, with numbers for the sizes that have only a name in it.
//
//   plumb partition bert.onnx:sequence=128 h100:4

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "planner/spec/model_spec.h"

namespace plumb { inline namespace tools {

struct OnnxName {
  std::string path;
  std::map<std::string, std::int64_t> sizes;
};

/// Returns what "FILE.onnx:NAME=NUMBER,..." names; nothing for a text that names no ONNX file. Throws UsageError if what
/// follows the colon is no list of names with numbers above 0.
std::optional<OnnxName> onnx_name(const std::string& text);

/// Reads the model. What is left out of it, and a file of weights that is missing, are noted on stderr. Throws InputError
/// as model_from_onnx() does.
ModelSpec onnx_input(const OnnxName& name);

}}  // namespace plumb::tools
