#include "planner/score/source_mapping.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/score/known_pattern.h"
#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/json_text.h"
#include "schedules/forms/strict_json.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;
using Fields = std::vector<std::pair<std::string, json>>;

/// Returns the first word of a dotted path, and the rest.
std::pair<std::string_view, std::string_view> split_path(std::string_view path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return {path, {}};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

void check_expression(StrictObject& object, std::string_view key, const std::string& expression) {
  try {
    const Pattern known(expression);
  } catch (const SpecError& error) {
    object.fail(key, error.what());
  }
}

bool found_in(const std::string& expression, const std::string& text) {
  return known_pattern(expression).found_in(text);
}

Fields fields(StrictObject& object, std::string_view key) {
  Fields result;
  if (!object.has(key)) return result;
  const json& values = object.raw(key);
  if (!values.is_object()) object.fail(key, "this is no object: write {\"FIELD\": VALUE}");
  for (const auto& [field, value] : values.items()) result.emplace_back(field, value);
  return result;
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : json_line(value);
}

bool holds(const std::pair<std::string, json>& condition, const json& row) {
  const json& value = value_at(row, condition.first);
  if (condition.second.is_string()) return !value.is_null() && found_in(condition.second, text_of(value));
  return value == condition.second;
}

std::vector<std::pair<std::string, std::string>> copies(StrictObject& object) {
  std::vector<std::pair<std::string, std::string>> result;
  for (const auto& [field, from] : fields(object, "copy")) {
    if (!from.is_string()) object.fail("copy", "name the field that is copied: {\"FIELD\": \"OTHER\"}");
    result.emplace_back(field, from.get<std::string>());
  }
  return result;
}

std::vector<std::pair<std::string, std::vector<DerivedTerm>>> derivations(StrictObject& object) {
  constexpr const char* kForm = "write a list of factors and fields: {\"FIELD\": [[4, \"OTHER\"]]}";
  std::vector<std::pair<std::string, std::vector<DerivedTerm>>> result;
  for (const auto& [field, terms] : fields(object, "derive")) {
    if (!terms.is_array() || terms.empty()) object.fail("derive", kForm);
    std::vector<DerivedTerm> sum;
    for (const json& term : terms) {
      if (!term.is_array() || term.size() != 2 || !term[0].is_number() || !term[1].is_string())
        object.fail("derive", kForm);
      sum.emplace_back(term[0].get<double>(), term[1].get<std::string>());
    }
    result.emplace_back(field, std::move(sum));
  }
  return result;
}

/// Returns the sum as a whole number where it is one; null if a field is not printed as a number.
json derived(const std::vector<DerivedTerm>& terms, const json& row) {
  double sum = 0;
  for (const auto& [factor, field] : terms) {
    const json& value = value_at(row, field);
    if (!value.is_number()) return nullptr;
    sum += factor * value.get<double>();
  }
  constexpr double kExact = 9e15;
  if (std::abs(sum) < kExact && sum == std::floor(sum)) return static_cast<std::int64_t>(sum);
  return sum;
}

MappingRule rule_from(StrictObject& object) {
  MappingRule rule{.where = fields(object, "where"),
                   .unless = fields(object, "unless"),
                   .copy = copies(object),
                   .derive = derivations(object),
                   .fill = fields(object, "fill"),
                   .correct = fields(object, "correct"),
                   .skip = object.text_or("skip", ""),
                   .because = object.text_or("because", "")};
  for (const auto& [key, conditions] : {std::pair{"where", &rule.where}, std::pair{"unless", &rule.unless}}) {
    for (const auto& [field, value] : *conditions) {
      if (value.is_string()) check_expression(object, key, value);
    }
  }
  if (!rule.correct.empty() && rule.because.empty()) {
    object.fail("because", "a correction of what was printed needs its evidence: add it");
  }
  object.finish();
  return rule;
}

}  // namespace

SourceMapping parse_source_mapping(std::string_view text, const std::string& file) {
  const json document = parse_file(FileForm::kMapping, text, file);
  StrictObject object(document, file);
  SourceMapping mapping{.name = object.text("name")};
  const json& cites = object.raw("cites");
  if (!cites.is_array())
    object.fail("cites", "name the repositories or papers: [\"OWNER/NAME\"], or [] for all others");
  for (const json& cited : cites) mapping.cites.push_back(text_of(cited));
  if (object.has("published")) {
    for (StrictObject& error : object.objects("published")) {
      mapping.published.push_back({.who = error.text("who"),
                                   .quantity = error.choice("quantity", {"step_time", "memory"}),
                                   .mean_pct = error.non_negative_number("mean_pct"),
                                   .note = error.text_or("note", "")});
      error.finish();
    }
  }
  for (StrictObject& rule : object.objects("clusters")) {
    ClusterRule& cluster = mapping.clusters.emplace_back(
        ClusterRule{.hardware = rule.text("hardware"), .cluster = rule.text("cluster"), .set = fields(rule, "set")});
    cluster.table = rule.text_or("table", "");
    cluster.network_as_printed = rule.boolean_or("network_as_printed", false);
    check_expression(rule, "hardware", cluster.hardware);
    check_expression(rule, "table", cluster.table);
    rule.finish();
  }
  if (object.has("rules")) {
    for (StrictObject& rule : object.objects("rules")) mapping.rules.push_back(rule_from(rule));
  }
  if (object.has("limits")) {
    const json& limits = object.raw("limits");
    if (!limits.is_array()) object.fail("limits", "give a list of sentences");
    for (const json& limit : limits) {
      if (!limit.is_string() || limit.get<std::string>().empty()) object.fail("limits", "give a list of sentences");
      mapping.limits.push_back(limit);
    }
  }
  object.finish();
  return mapping;
}

std::string citation_of(const json& row) {
  for (const char* path : {"source.repo", "source.paper"}) {
    const json& cited = value_at(row, path);
    if (cited.is_string()) return cited;
  }
  return {};
}

const SourceMapping* mapping_for(const std::vector<SourceMapping>& mappings, const json& row) {
  const std::string citation = citation_of(row);
  const SourceMapping* best = nullptr;
  std::size_t longest = 0;
  for (const SourceMapping& mapping : mappings) {
    if (mapping.cites.empty() && !best) best = &mapping;
    for (const std::string& cited : mapping.cites) {
      if (cited.size() <= longest || !citation.starts_with(cited)) continue;
      longest = cited.size();
      best = &mapping;
    }
  }
  return best;
}

bool row_meets(const RowConditions& conditions, const json& row) {
  return std::ranges::all_of(conditions, [&](const auto& condition) { return holds(condition, row); });
}

std::pair<std::string, json> parse_row_condition(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) {
    throw SpecError(fmt::format("only \"{}\": write FIELD=EXPRESSION, such as precision=bf16 or model.name=70B", text));
  }
  const std::string expression(text.substr(equals + 1));
  const Pattern known(expression, fmt::format("only \"{}\"", text));
  return {std::string(text.substr(0, equals)), expression};
}

ReadRow read_by(const SourceMapping& mapping, const json& printed, bool corrected) {
  json row = printed;
  ReadRow read;
  for (const MappingRule& rule : mapping.rules) {
    const bool excluded =
        std::ranges::any_of(rule.unless, [&](const auto& condition) { return holds(condition, row); });
    if (excluded || !row_meets(rule.where, row)) continue;
    if (!rule.skip.empty() && read.skip.empty()) read.skip = rule.skip;
    for (const auto& [field, from] : rule.copy) {
      const json value = value_at(row, from);
      if (value_at(row, field).is_null() && !value.is_null()) set_at(row, field, value);
    }
    for (const auto& [field, terms] : rule.derive) {
      const json sum = derived(terms, row);
      if (value_at(row, field).is_null() && !sum.is_null()) set_at(row, field, sum);
    }
    for (const auto& [field, value] : rule.fill) {
      if (value_at(row, field).is_null()) set_at(row, field, value);
    }
    if (!corrected) continue;
    bool changed = false;
    for (const auto& [field, value] : rule.correct) {
      if (value_at(row, field) == value) continue;
      set_at(row, field, value);
      changed = true;
    }
    if (changed) read.corrections.push_back(rule.because);
  }
  read.row = std::make_shared<const json>(std::move(row));
  return read;
}

const SourceMapping* general_mapping(const std::vector<SourceMapping>& mappings) {
  const auto found = std::ranges::find_if(mappings, [](const SourceMapping& mapping) { return mapping.cites.empty(); });
  return found == mappings.end() ? nullptr : &*found;
}

ReadRow read_by_all(const std::vector<SourceMapping>& mappings, const SourceMapping* mapping, const json& printed,
                    bool corrected) {
  if (mapping == nullptr) return {.row = std::make_shared<const json>(printed)};
  ReadRow read = read_by(*mapping, printed, corrected);
  const SourceMapping* general = general_mapping(mappings);
  if (general != nullptr && general != mapping) read.row = read_by(*general, *read.row, false).row;
  return read;
}

const ClusterRule* cluster_rule_for(const SourceMapping& mapping, const std::string& hardware) {
  const auto found = std::ranges::find_if(mapping.clusters,
                                          [&](const ClusterRule& rule) { return found_in(rule.hardware, hardware); });
  return found == mapping.clusters.end() ? nullptr : &*found;
}

const json& value_at(const json& document, std::string_view path) {
  static const json kNull;
  const auto [word, rest] = split_path(path);
  if (!document.is_object()) return kNull;
  const auto found = document.find(word);
  if (found == document.end()) return kNull;
  return rest.empty() ? *found : value_at(*found, rest);
}

void set_at(json& document, std::string_view path, const json& value) {
  const auto [word, rest] = split_path(path);
  if (!document.is_object()) document = json::object();
  json& inner = document[std::string(word)];
  if (rest.empty()) {
    inner = value;
  } else {
    set_at(inner, rest, value);
  }
}

}}  // namespace plumb::planner
