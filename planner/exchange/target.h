#pragma once
// A target is a trainer to which plans are handed, and from whose settings runs are read. It is data, not code: a table
// that says which of its settings holds which fact of a run (tools/specs/targets/*.json). One writer and one reader
// walk the table (export_settings.h, import_settings.h), so that the two cannot disagree.
//
//   {"name": "torchtitan", "source": "pytorch/torchtitan@...", "form": "toml", "stacks": [{"stack": "torchtitan"}],
//    "keys": [{"key": "parallelism.tensor_parallel_degree", "fact": "tp", "absent": 1},
//             {"key": "activation_checkpoint.mode", "fact": "recompute", "values": {"none": "none", "full": "full"}}],
//    "implied": [{"fact": "bucket_mib", "is": 0, "because": "its buckets are its own"}],
//    "unsaid": [{"facts": ["model"], "say": "..."}]}

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "planner/exchange/facts/facts.h"
#include "planner/exchange/forms/settings_text.h"

namespace plumb { inline namespace planner {

/// True for runs whose fact is a number above that one.
struct FactCondition {
  std::string fact;
  double above = 0;
};

bool holds(const std::optional<FactCondition>& condition, const Facts& facts);

/// Returns the value of a table, where {"as": FACT} is that fact's.
nlohmann::json table_value(const nlohmann::json& value, const Facts& facts);

struct TargetKey {
  std::string key;   ///< "--seq-length", or a path with dots
  std::string fact;  ///< of facts.h or derived_facts.h; empty: every run has the same value, `constant`
  /// (fact's text, value) pairs; null: the key is left out. Empty: the key holds the fact as it is.
  std::vector<std::pair<std::string, nlohmann::json>> values;
  /// (value, fact's text) pairs of other spellings; a value may stand for several facts that other keys tell apart.
  std::vector<std::pair<nlohmann::json, std::string>> also_read;
  nlohmann::json constant;
  nlohmann::json absent;              ///< the fact without the key, or {"as": another fact}; null: it stays unknown
  std::optional<double> above;        ///< the key is left out for numbers up to this one
  bool written = true;                ///< false: the key is only read
  bool read = true;                   ///< false: the key is only written
  std::string refused;                ///< why runs with this key are not read; empty: they are
  std::optional<FactCondition> when;  ///< runs for which the key exists
  nlohmann::json otherwise;           ///< the fact of other runs; null: it does not matter
};

/// A fact that the target's runs have and that no setting of it changes.
struct ImpliedFact {
  std::string fact;
  nlohmann::json value;               ///< or {"as": another fact}
  std::optional<FactCondition> when;  ///< the first entry of a fact whose condition holds counts
  std::string because;
};

/// Facts that the target's settings leave to something else.
struct UnsaidFacts {
  std::vector<std::string> facts;  ///< "model" means all facts of the model
  std::string say;                 ///< where they belong
};

/// Runs that the target does not do, although a setting holds each of their facts.
struct TargetConflict {
  std::vector<FactCondition> when;  ///< all hold
  std::string say;
};

/// How a trainer prints its settings at the top of a log.
struct LoggedForm {
  std::string begin;  ///< text of the line before the first; of trainers with JSON, the text in front of its brace
  std::string end;    ///< text of the line behind the last, of trainers with arguments
  // By the name under which an argument is printed:
  std::map<std::string, std::string, std::less<>> renamed;       ///< key, where it is not "--" and the name
  std::map<std::string, std::string, std::less<>> negated;       ///< key that is given where False is printed
  std::map<std::string, std::string, std::less<>> only_with;     ///< the argument without which it says nothing
  std::map<std::string, std::string, std::less<>> unless_equal;  ///< the argument whose value is its default
  std::map<std::string, std::string, std::less<>>
      facts;  ///< fact, of those that are no arguments and printed with them
};

struct Target {
  std::string name;
  std::string note;    ///< the file that is written
  std::string source;  ///< where its keys are documented
  SettingsForm form = SettingsForm::kJson;
  std::optional<LoggedForm> logged;  ///< nothing: it does not print them, or in no form that is read
  std::string launch;                ///< the command that a launcher starts, with {file}
  /// The stack that its runs have (spec/stack_spec.h); the first entry whose condition holds counts. Empty: none is
  /// described.
  std::vector<std::pair<std::string, std::optional<FactCondition>>> stacks;
  std::vector<TargetKey> keys;
  std::vector<ImpliedFact> implied;
  std::vector<UnsaidFacts> unsaid;
  std::vector<TargetConflict> conflicts;
};

/// Returns the name of the stack of such runs; empty if none is described.
std::string stack_of(const Target& target, const Facts& facts);

/// Returns the entry of that implied fact which counts; null if there is none.
const ImpliedFact* implied_of(const Target& target, const Facts& facts, std::string_view fact);

/// True if the target leaves the fact to something else.
bool is_unsaid(const Target& target, std::string_view fact);

/// Throws SpecError with the place of an unknown key, a missing one or a wrong type.
Target parse_target(std::string_view text, const std::string& file);

}}  // namespace plumb::planner
