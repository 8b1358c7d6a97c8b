#include "planner/exchange/export_settings.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/exchange/facts/derived_facts.h"
#include "planner/exchange/forms/plain_value.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

class Exporter {
 public:
  Exporter(const Target& target, Facts facts) : target_(target), facts_(std::move(facts)) {}

  Exported run() {
    if (is_graph()) return std::move(exported_);
    for (const TargetKey& key : target_.keys) {
      if (key.written && key.refused.empty()) write(key);
    }
    check_implied();
    check_conflicts();
    note_unsaid();
    return std::move(exported_);
  }

 private:
  bool is_graph() {
    if (fact_at(facts_, "model.graph").is_null()) return false;
    exported_.refused.push_back(
        fmt::format("{} trains transformers, and the plan's model is a graph of layers: export its order to torch-csv, "
                    "or its step to chakra",
                    target_.name));
    return true;
  }

  void refuse(const std::string& fact, const std::string& because) {
    const std::string decider(decider_of(fact));
    if (!refused_.insert(decider).second) return;
    exported_.refused.push_back(fmt::format("{} cannot express {}={}: {}", target_.name, decider,
                                            plain_text(fact_at(facts_, decider)), because));
  }

  void write(const TargetKey& key) {
    if (key.fact.empty()) {
      if (holds(key.when, facts_)) exported_.settings.emplace_back(key.key, key.constant);
      return;
    }
    const json& value = fact_at(facts_, key.fact);
    if (!holds(key.when, facts_)) {
      if (!key.otherwise.is_null() && !value.is_null() && value != key.otherwise)
        refuse(key.fact, fmt::format("give {}={}", key.fact, plain_text(key.otherwise)));
      return;
    }
    if (value.is_null() && !remedy_of(key.fact).empty()) return refuse(key.fact, std::string(remedy_of(key.fact)));
    if (key.values.empty()) return write_as_it_is(key, value);
    const std::string text = plain_text(value);
    const auto found = std::ranges::find(key.values, text, &std::pair<std::string, json>::first);
    if (found == key.values.end()) return refuse(key.fact, choices(key));
    if (!found->second.is_null()) exported_.settings.emplace_back(key.key, found->second);
  }

  void write_as_it_is(const TargetKey& key, const json& value) {
    if (value.is_null() || (value.is_string() && value == json("")) || (value.is_array() && value.empty())) return;
    if (key.above && value.is_number() && value.get<double>() <= *key.above) return;
    exported_.settings.emplace_back(key.key, value);
  }

  static std::string choices(const TargetKey& key) {
    if (!remedy_of(key.fact).empty()) return std::string(remedy_of(key.fact));
    std::vector<std::string> names;
    for (const auto& [ours, theirs] : key.values) names.push_back(ours);
    return fmt::format("give {}={}", key.fact, fmt::join(names, " or "));
  }

  /// Refuses facts that are not those that all runs of the target have.
  void check_implied() {
    for (const ImpliedFact& implied : target_.implied) {
      const std::string& fact = implied.fact;
      const json value = fact_at(facts_, fact), wanted = table_value(implied.value, facts_);
      if (implied_of(target_, facts_, fact) != &implied || value == wanted) continue;
      const std::string remedy = !remedy_of(fact).empty() ? std::string(remedy_of(fact))
                                 : wanted.is_null()       ? std::string("leave it out")
                                                          : fmt::format("give {}={}", fact, plain_text(wanted));
      refuse(fact, implied.because.empty() ? remedy : fmt::format("{}; {}", implied.because, remedy));
    }
  }

  void check_conflicts() {
    for (const TargetConflict& conflict : target_.conflicts) {
      if (std::ranges::all_of(conflict.when, [&](const FactCondition& when) { return holds(when, facts_); }))
        exported_.refused.push_back(fmt::format("{} cannot express this run: {}", target_.name, conflict.say));
    }
  }

  void note_unsaid() {
    for (const UnsaidFacts& unsaid : target_.unsaid) {
      std::vector<std::string> words;
      for (const std::string& fact : unsaid.facts) {
        const json& value = fact_at(facts_, fact);
        words.push_back(value.is_null() ? "the " + fact : fmt::format("{}={}", fact, plain_text(value)));
      }
      exported_.notes.push_back(
          fmt::format("the settings of {} do not hold {}: {}", target_.name, fmt::join(words, ", "), unsaid.say));
    }
  }

  const Target& target_;
  Facts facts_;
  Exported exported_;
  std::set<std::string> refused_;
};

}  // namespace

Exported export_settings(const Target& target, Facts facts) {
  add_derived(facts);
  return Exporter(target, std::move(facts)).run();
}

}}  // namespace plumb::planner
