#pragma once
// What is known of a source of published rows and does not stand in its rows: which framework ran, on which machine,
// what was not printed, and what was printed wrong. Data, not code: a JSON file a source under tools/specs/score, found
// by the repository or paper that a row cites.
//
//   {"name": "vtrain", "cites": ["VIA-Research/vTrain"], "limits": ["16 rows are up to half slower than their like"],
//    "published": [{"who": "Calculon", "quantity": "step_time", "mean_pct": 15.3}],
//    "clusters": [{"hardware": "A100", "cluster": "a100", "set": {"network.bandwidth_gb_per_s": {"value": 12.5,
//                  "source": "..."}}}],
//    "rules": [{"where": {"hardware": "one node"}, "fill": {"model.vocab": 51200}, "because": "..."},
//              {"where": {"hardware": "one node"}, "correct": {"recompute": "selective"}, "because": "..."},
//              {"where": {"kind": "ANALYTIC"}, "skip": "computed by the authors, not measured"}]}
//
// Rules are applied in their order. `where` names fields of the row by dotted path: a text is a regular expression
// (schedules/pattern.h) searched in the field's text, anything else must be equal (null: not printed); all must hold,
// and none of `unless`. `fill`
// sets what the row does not print, `copy` takes it from another field, `derive` makes it the sum of other fields, each
// times a factor, if all of them are printed ({"model.ffn": [[4, "model.hidden"]]}); `correct` what it prints
// otherwise, `skip` says why such a row cannot be predicted. A mapping that cites nothing (`"cites": []`) is the
// general one: it reads the rows of sources that no other names.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace plumb { inline namespace planner {

/// Fields by dotted path and what each must hold: a text is a regular expression, anything else must be equal.
using RowConditions = std::vector<std::pair<std::string, nlohmann::json>>;

/// A factor and the path of the field that it multiplies.
using DerivedTerm = std::pair<double, std::string>;

struct MappingRule {
  RowConditions where;   ///< it is for rows that meet all of these
  RowConditions unless;  ///< and none of these
  std::vector<std::pair<std::string, std::string>> copy;
  std::vector<std::pair<std::string, std::vector<DerivedTerm>>> derive;
  std::vector<std::pair<std::string, nlohmann::json>> fill;
  std::vector<std::pair<std::string, nlohmann::json>> correct;
  std::string skip;
  std::string because;
};

struct ClusterRule {
  std::string hardware;  ///< regular expression
  std::string cluster;   ///< a preset's name
  std::string table;     ///< regular expression: measured products of such hardware bend the model; empty: none
  bool network_as_printed = false;  ///< "8x200Gb", "400 Gb/s per GPU" in the row's hardware replace the preset's NICs
  std::vector<std::pair<std::string, nlohmann::json>> set;  ///< figures of this machine that the preset has otherwise
};

/// Another predictor's error on the same source.
struct PublishedError {
  std::string who;
  std::string quantity;  ///< "step_time" or "memory"
  double mean_pct = 0;
  std::string note;
};

struct SourceMapping {
  std::string name;
  std::vector<std::string> cites;  ///< each the beginning of what a row's source.repo or source.paper is; empty: any
  std::vector<PublishedError> published;
  std::vector<ClusterRule> clusters;
  std::vector<MappingRule> rules;
  std::vector<std::string> limits;  ///< what its rows leave unknown or the model leaves out, each with its evidence
};

/// Reading throws SpecError with the place: an unknown or missing key, a wrong type, a regular expression that is none,
/// a correction without its evidence (`because`).
SourceMapping parse_source_mapping(std::string_view text, const std::string& file);

/// source.repo, or source.paper; empty if the row cites neither.
std::string citation_of(const nlohmann::json& row);

/// The mapping whose `cites` the row's citation begins with (the longest such; of equals the first), or else the
/// general one; null: neither is there.
const SourceMapping* mapping_for(const std::vector<SourceMapping>& mappings, const nlohmann::json& row);

/// A row as its mapping reads it.
struct ReadRow {
  std::shared_ptr<const nlohmann::json> row;
  std::vector<std::string> corrections;  ///< evidence of those that changed a field
  std::string skip;                      ///< empty: it may be predicted
};

/// Applies the rules; `corrected` false leaves the corrections out.
ReadRow read_by(const SourceMapping& mapping, const nlohmann::json& printed, bool corrected = true);

bool row_meets(const RowConditions& conditions, const nlohmann::json& row);

/// "PATH=EXPRESSION". Throws SpecError unless it is such a text and the expression is one.
std::pair<std::string, nlohmann::json> parse_row_condition(std::string_view text);

/// The first rule whose expression is found in `hardware`; null: none.
const ClusterRule* cluster_rule_for(const SourceMapping& mapping, const std::string& hardware);

/// The value at a dotted path, null if a part of the path is not there.
const nlohmann::json& value_at(const nlohmann::json& document, std::string_view path);

/// Sets the value at a dotted path, making objects where there are none.
void set_at(nlohmann::json& document, std::string_view path, const nlohmann::json& value);

}}  // namespace plumb::planner
