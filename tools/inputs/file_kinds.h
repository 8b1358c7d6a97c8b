#pragma once
// The ending and the keys of a file tell its kind, so that a verb that reads another kind can say what it was given.
//
//   read_as(FileKind::kPlan, path, [&] { return parse_plan(read_text_file(path), path); });
//   // trace.json: this is a Chrome trace, and a plan is wanted: `plumb trace info` reads it

#include <cstdint>
#include <string>
#include <string_view>

#include "schedules/error.h"

namespace plumb { inline namespace tools {

enum class FileKind : std::uint8_t {
  kModel,  ///< also a layer graph, an ONNX model, and a Hugging Face config
  kCluster,
  kStack,
  kPlan,
  kLayout,
  kSchedule,
  kCosts,
  kCertificate,
  kTopology,
  kLink,
  kTrace,
  kRows,
  kProfile,
  kMeasurement,  ///< logs and tables
  kForeign,      ///< a file that no verb reads
};

/// Returns true if the path ends as a known kind of file does, Plumb's own or another: no preset has such a name.
bool has_known_ending(std::string_view path);

/// Returns true if the file can be told to be of the kind.
bool is_of_kind(FileKind kind, const std::string& path);

/// Returns a sentence that names the file's kind, the kind `wanted` and what reads the file; empty if the file is of
/// the kind `wanted`, or its kind cannot be told.
std::string wrong_kind(FileKind wanted, const std::string& path);

/// Returns read()'s value. Where read() throws InputError, throws one with the text of wrong_kind() instead, if that is
/// not empty.
template <typename Read>
auto read_as(FileKind wanted, const std::string& path, Read read) {
  try {
    return read();
  } catch (const InputError&) {
    const std::string what = wrong_kind(wanted, path);
    if (!what.empty()) throw InputError(what);
    throw;
  }
}

}}  // namespace plumb::tools
