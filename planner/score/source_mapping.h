#pragma once
// Facts about a source of published rows that do not stand in its rows: the framework that ran, the machine, values
// that were not printed, and values that were printed wrong. They are data, not code: each source has a JSON file under
// tools/specs/score, found by the repository or paper that a row cites.
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
// (schedules/pattern.h) searched in the field's text, any other value must be equal (null: not printed). A rule is for
// rows that meet all of `where` and none of `unless`. It may have these:
//   fill     sets fields that the row does not print
//   copy     sets them from other fields
//   derive   sets them to the sum of other fields, each times a factor, if all of these are printed
//            ({"model.ffn": [[4, "model.hidden"]]})
//   correct  replaces printed values
//   skip     says why such a row cannot be predicted
// A mapping that cites nothing (`"cites": []`) is the general one: it reads the rows of sources that no other names, and
// fills what another mapping leaves missing: facts of frameworks and devices, whoever printed the row.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace plumb { inline namespace planner {

/// Fields by dotted path and the value of each: a text is a regular expression, any other value must be equal.
using RowConditions = std::vector<std::pair<std::string, nlohmann::json>>;

/// A factor and the path of the field that it multiplies.
using DerivedTerm = std::pair<double, std::string>;

struct MappingRule {
  RowConditions where;   ///< the rule is for rows that meet all of these
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
  std::string table;     ///< regular expression: measured products of such hardware correct the model; empty: none
  bool network_as_printed = false;  ///< "8x200Gb", "400 Gb/s per GPU" in the row's hardware replace the preset's NICs
  std::vector<std::pair<std::string, nlohmann::json>> set;  ///< figures of this machine that differ from the preset's
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
  std::vector<std::string> cites;  ///< beginnings of a row's source.repo or source.paper; empty: any
  std::vector<PublishedError> published;
  std::vector<ClusterRule> clusters;
  std::vector<MappingRule> rules;
  std::vector<std::string> limits;  ///< facts that its rows or the model leave out, each with its evidence
};

/// Reads a mapping. Throws SpecError with the place: an unknown or missing key, a wrong type, an invalid regular
/// expression, a correction without its evidence (`because`).
SourceMapping parse_source_mapping(std::string_view text, const std::string& file);

/// Returns source.repo, or source.paper; empty if the row cites neither.
std::string citation_of(const nlohmann::json& row);

/// Returns the mapping whose `cites` begins the row's citation (the longest such; the first of equals), or else the
/// general one; null if there is neither.
const SourceMapping* mapping_for(const std::vector<SourceMapping>& mappings, const nlohmann::json& row);

/// Returns the general mapping; null if there is none.
const SourceMapping* general_mapping(const std::vector<SourceMapping>& mappings);

/// A row as its mapping reads it.
struct ReadRow {
  std::shared_ptr<const nlohmann::json> row;
  std::vector<std::string> corrections;  ///< evidence of the corrections that changed a field
  std::string skip;                      ///< empty: the row may be predicted
};

/// Applies the rules; `corrected` false leaves the corrections out.
ReadRow read_by(const SourceMapping& mapping, const nlohmann::json& printed, bool corrected = true);

/// Applies the rules of its own mapping, and then lets the general one fill what is still missing. `mapping` is one of
/// `mappings`, or null.
ReadRow read_by_all(const std::vector<SourceMapping>& mappings, const SourceMapping* mapping,
                    const nlohmann::json& printed, bool corrected = true);

bool row_meets(const RowConditions& conditions, const nlohmann::json& row);

/// Reads "PATH=EXPRESSION". Throws SpecError unless the text has this form and the expression is valid.
std::pair<std::string, nlohmann::json> parse_row_condition(std::string_view text);

/// Returns the first rule whose expression is found in `hardware`; null if there is none.
const ClusterRule* cluster_rule_for(const SourceMapping& mapping, const std::string& hardware);

/// Returns the value at a dotted path, null if a part of the path is not there.
const nlohmann::json& value_at(const nlohmann::json& document, std::string_view path);

/// Sets the value at a dotted path, making objects where there are none.
void set_at(nlohmann::json& document, std::string_view path, const nlohmann::json& value);

}}  // namespace plumb::planner
