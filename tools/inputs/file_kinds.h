#pragma once
// A file's kind is told by its ending and its keys, where it was given to a verb that reads another kind.
//
//   read_as(FileKind::kPlan, path, [&] { return parse_plan(read_text_file(path), path); });
//   // trace.json: this is a Chrome trace, and a plan is wanted: `plumb trace info` reads it

#include <cstdint>
#include <string>
#include <string_view>

#include "schedules/error.h"

namespace plumb { inline namespace tools {

enum class FileKind : std::uint8_t {
  kModel,  ///< a layer graph and a Hugging Face config too
  kCluster,
  kStack,
  kPlan,
  kSchedule,
  kTopology,
  kLink,
  kTrace,
  kRows,
  kProfile,
  kMeasurement,  ///< logs and tables
  kForeign,      ///< what no verb reads
};

/// Returns true for the ending of a kind of file that is known, Plumb's or not: no preset is named so.
bool has_known_ending(std::string_view path);

/// Says what is wrong with giving the file where `wanted` is read: its kind, and what reads it. Empty if it is of that
/// kind, or its kind cannot be told.
std::string wrong_kind(FileKind wanted, const std::string& path);

/// read()'s value. Throws InputError with wrong_kind's text where that says more than what read() throws.
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
