#include "schedules/forms/file_format.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "schedules/forms/strict_json.h"
#include "schedules/forms/whole_number.h"

namespace plumb { inline namespace schedules {
namespace {

constexpr const char* kFormatKey = "plumb_format";

struct FormEntry {
  std::string_view what;
  int newest;
  std::string_view remedy;  ///< an alternative to updating Plumb
};

/// The entries stand in the order of FileForm.
constexpr std::array<FormEntry, kFileFormCount> kForms = {{
    {"a plan", 1, "write the file again with `plumb plan ... -o`"},
    {"a schedule", 1, "write the file again with `plumb schedule make ... -o`"},
    {"a cluster", 1, "write the file again with `plumb calibrate ... -o` or `plumb clusters NAME`"},
    {"a model", 1, "write the file again as `plumb models NAME` shows one"},
    {"a stack", 1, "write the file again as `plumb stacks NAME` shows one"},
    {"a topology", 1, "write the file again as planner/spec/topology_spec.h shows one"},
    {"a measured link", 1, "write the file again with `plumb calibrate --only transport -o`"},
    {"a mapping of rows", 1, "write the file again as planner/score/source_mapping.h shows one"},
    {"a checkpoint", 1, "start without --resume"},
    {"a certificate", 1, "write the file again with `plumb schedule search ... --certificate`"},
    {"costs", 1, "write the file again as tools/inputs/costs_file.h shows one"},
}};

const FormEntry& form_of(FileForm kind) {
  return kForms[static_cast<std::size_t>(kind)];
}

}  // namespace

int newest_format(FileForm kind) {
  return form_of(kind).newest;
}

int checked_format(FileForm kind, std::string_view number, const std::string& file) {
  const FormEntry& form = form_of(kind);
  const bool is_whole = !number.empty() && number.front() != '0' &&
                        std::ranges::all_of(number, [](char digit) { return digit >= '0' && digit <= '9'; });
  if (!is_whole) {
    constexpr std::size_t kMostShown = 24;  // a damaged file may have more
    throw SpecError(fmt::format("{}: format {} is no whole number of 1 or more: {}", file, number.substr(0, kMostShown),
                                form.remedy));
  }
  const std::optional<int> format = whole_number<int>(number);
  if (!format || *format > form.newest) {
    throw SpecError(
        fmt::format("{}: format {} of {} is newer than this Plumb, which reads up to {}: update Plumb, or {}", file,
                    number, form.what, form.newest, form.remedy));
  }
  return *format;
}

nlohmann::ordered_json with_format(FileForm kind, const nlohmann::ordered_json& document) {
  assert(document.is_object() && !document.contains(kFormatKey));
  nlohmann::ordered_json numbered{{kFormatKey, newest_format(kind)}};
  numbered.update(document);
  return numbered;
}

nlohmann::json without_format(FileForm kind, nlohmann::json document, const std::string& file) {
  if (!document.is_object() || !document.contains(kFormatKey)) return document;
  checked_format(kind, json_line(document[kFormatKey]), file);
  document.erase(kFormatKey);
  return document;
}

nlohmann::json parse_file(FileForm kind, std::string_view text, const std::string& file) {
  return without_format(kind, parse_json(text, file), file);
}

}}  // namespace plumb::schedules
