#include "tools/inputs/score_input.h"

#include <filesystem>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/score/kernel_tables.h"
#include "planner/search/whatif.h"
#include "schedules/error.h"
#include "schedules/forms/strict_json.h"
#include "tools/inputs/file_kinds.h"
#include "tools/inputs/presets.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::json;

ScoreLibrary embedded_library() {
  ScoreLibrary library;
  for (const Preset& preset : presets()) {
    const std::string name(preset.name);
    switch (preset.kind) {
      case Preset::Kind::kModel:
        library.models[name] = parse_json(preset.text, name);
        break;
      case Preset::Kind::kCluster:
        library.clusters[name] = parse_json(preset.text, name);
        break;
      case Preset::Kind::kStack:
        library.stacks[name] = parse_json(preset.text, name);
        break;
      case Preset::Kind::kMapping:
        library.mappings.push_back(parse_source_mapping(preset.text, name));
        break;
      case Preset::Kind::kTarget:
      case Preset::Kind::kReliability:
      case Preset::Kind::kErrorBars:
      case Preset::Kind::kPage:
      case Preset::Kind::kText:
        break;
    }
  }
  return library;
}

Override parse_override(const std::string& text) {
  const Variation one = read_option([&] { return parse_variation(text); });
  if (one.values.size() != 1 || (!one.key.starts_with("cluster.") && !one.key.starts_with("stack."))) {
    throw UsageError(fmt::format(
        "set \"{}\": write cluster.PATH=VALUE or stack.PATH=VALUE, such as cluster.device.gemm_efficiency=0.8", text));
  }
  if (is_label(one.key))
    throw UsageError(fmt::format("set \"{}\": another label changes no answer: set a figure", text));
  return {one.key, one.values.front()};
}

void add_tables(ScoreLibrary& library, const std::vector<json>& rows) {
  for (const SourceMapping& mapping : library.mappings) {
    for (const ClusterRule& rule : mapping.clusters) {
      if (!rule.table.empty()) library.samples[rule.table] = kernel_samples_of(rows, rule.table);
    }
  }
}

/// Leaves the mappings that such a reading takes; of the general one what is typed takes the hardware alone.
void read_for(ScoreLibrary& library, RowReading reading) {
  if (reading == RowReading::kOfSource) return;
  std::erase_if(library.mappings, [](const SourceMapping& mapping) { return !mapping.cites.empty(); });
  if (reading == RowReading::kGeneral) return;
  for (SourceMapping& general : library.mappings) {
    general.rules.clear();
    general.limits.clear();
  }
  library.open_fields = std::make_shared<const json>(json{{"mbs", {1, 2, 4, 8, 16}},
                                                          {"ep", {1, 2, 4, 8, 16, 32, 64, 128}},
                                                          {"recompute", {"none", "selective", "full"}},
                                                          {"sequence_parallel", {false, true}},
                                                          {"zero", {0, 1, 2, 3}}});
}

}  // namespace

RowReading reading_of(const ScoreArguments& arguments) {
  if (arguments.assume_default) return RowReading::kAsTyped;
  return arguments.general_rules ? RowReading::kGeneral : RowReading::kOfSource;
}

ScoreInput score_input(const ScoreArguments& arguments, RowReading reading) {
  const auto& [files, set, tables] = std::tie(arguments.files, arguments.set, arguments.tables);
  ScoreInput input{.library = embedded_library()};
  read_for(input.library, reading);
  std::vector<SourceMapping> own;
  for (const std::string& path : arguments.mappings) own.push_back(parse_source_mapping(read_text_file(path), path));
  input.library.mappings.insert(input.library.mappings.begin(), own.begin(), own.end());
  json dims = json::object();
  for (const std::string& text : set) input.library.overrides.push_back(parse_override(text));
  for (const std::string& path : files) {
    const std::string name = std::filesystem::path(path).filename().string();
    read_as(FileKind::kRows, path, [&] {
      const json document = parse_json(read_text_file(path), path);
      if (!document.is_object() || document.contains("rows")) {
        input.files.push_back(published_rows(document, name));
        return;
      }
      if (const std::string what = wrong_kind(FileKind::kRows, path); !what.empty()) throw InputError(what);
      dims.update(document);
    });
  }
  input.library.dims = std::make_shared<const json>(std::move(dims));
  std::vector<json> measured;
  for (const std::string& path : tables) {
    PublishedRows table = published_rows(parse_json(read_text_file(path), path), path);
    measured.insert(measured.end(), table.rows.begin(), table.rows.end());
  }
  if (!tables.empty()) add_tables(input.library, measured);
  return input;
}

}}  // namespace plumb::tools
