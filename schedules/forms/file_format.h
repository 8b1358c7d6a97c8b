#pragma once
// The format number of Plumb's own files lets a later Plumb change a form and still tell what it is given. A JSON file
// carries it as its first key, "plumb_format", in the outermost object only; a checkpoint carries it in its first line.
// A file without one is of format 1, because such files were written before there were numbers.
//
//   write_file(path, with_format(FileForm::kCluster, to_json(cluster)).dump(1) + "\n");
//   ClusterSpec cluster = cluster_from_json(parse_file(FileForm::kCluster, text, path), path);
//
// A change of a form that older Plumbs would misread must raise the form's number in file_format.cpp.

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace plumb { inline namespace schedules {

enum class FileForm {
  kPlan,
  kSchedule,
  kCluster,
  kModel,
  kStack,
  kTopology,
  kLink,
  kMapping,
  kCheckpoint,
  kCertificate,
  kCosts
};
constexpr int kFileFormCount = 11;

/// Returns the number that this Plumb writes, which is the newest that it reads.
int newest_format(FileForm kind);

/// Checks a number as it stands in the file, e.g. "1", and returns it. Throws SpecError, one sentence with the file and
/// the remedy, if it is no whole number of 1 or more, or a newer one than this Plumb reads.
int checked_format(FileForm kind, std::string_view number, const std::string& file);

/// Returns the document of a file with its number as first key. `document` must be an object.
nlohmann::ordered_json with_format(FileForm kind, const nlohmann::ordered_json& document);

/// Checks the number of a file and returns its document without it. A document that is no object has no number.
nlohmann::json without_format(FileForm kind, nlohmann::json document, const std::string& file);

/// Returns without_format() of parse_json().
nlohmann::json parse_file(FileForm kind, std::string_view text, const std::string& file);

}}  // namespace plumb::schedules
