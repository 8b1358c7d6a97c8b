#include "planner/exchange/import_settings.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/exchange/facts/derived_facts.h"
#include "planner/exchange/forms/plain_value.h"
#include "schedules/error.h"
#include "schedules/generators/spellings.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

/// True if the value is the one written, also where a form has no word for its type: 1 for true, "8" for 8, 1.0 for 1.
bool same(const json& value, const json& written) {
  return value == written || plain_text(value) == plain_text(written);
}

class Importer {
 public:
  Importer(const Target& target, const Settings& settings, Facts known, const std::string& place)
      : target_(target), settings_(settings), facts_(std::move(known)), place_(place) {}

  Imported run() {
    for (const TargetKey& key : target_.keys) {
      if (key.read) read(key);
    }
    learn_chosen();
    solve(facts_, place_);
    for (const TargetKey& key : target_.keys) take_absent(key);
    solve(facts_, place_);
    take_implied();
    solve(facts_, place_);
    check_conflicts();
    return {.run = run_of(facts_, place_), .stack = stack_of(target_, facts_), .ignored = ignored()};
  }

 private:
  /// Returns the value of a key, the last one if it is given several times; null if it is not given, or as nothing.
  const json& value_of(const std::string& key) const {
    static const json kMissing;
    const auto found =
        std::find_if(settings_.rbegin(), settings_.rend(), [&](const auto& s) { return s.first == key; });
    // "auto" leaves the choice to a script.
    return found == settings_.rend() || found->second == json("auto") ? kMissing : found->second;
  }

  void read(const TargetKey& key) {
    const json& value = value_of(key.key);
    if (!key.refused.empty()) {
      if (!value.is_null() && value != json(false) && value != json("") && value != json::array())
        throw SpecError(fmt::format("{}: {}: {}", place_, key.key, key.refused));
      return;
    }
    if (!holds(key.when, facts_)) return;
    if (key.fact.empty()) {
      if (!value.is_null() && !same(value, key.constant)) {
        throw SpecError(fmt::format("{}: {} is {}, and runs of {} have {}: name the target that it is by --from",
                                    place_, key.key, plain_text(value), target_.name, plain_text(key.constant)));
      }
      return;
    }
    if (!key.values.empty()) return narrow(key, value);
    if (value.is_null()) return;
    // A value that stands for "not given" is that: torchtitan writes -1.
    if (key.absent.is_null() && value == json(-1)) return;
    learn(facts_, key.fact, value, place_);
  }

  /// Keeps the values of a fact that this key allows, too.
  void narrow(const TargetKey& key, const json& value) {
    std::set<std::string> allowed;
    for (const auto& [ours, theirs] : key.values) {
      if (same(value, theirs) || (value == json(false) && theirs.is_null())) allowed.insert(ours);
    }
    for (const auto& [theirs, ours] : key.also_read) {
      if (same(value, theirs)) allowed.insert(ours);
    }
    if (allowed.empty() && key.fact == "schedule" && value.is_string())
      allowed.emplace(schedule_spelled(value.get<std::string>()));
    allowed.erase("");
    if (value.is_null() && allowed.empty()) return;
    if (allowed.empty()) refuse(key, value);
    const auto [chosen, first] = chosen_.try_emplace(key.fact, allowed);
    if (first) return;
    std::set<std::string> both;
    std::ranges::set_intersection(chosen->second, allowed, std::inserter(both, both.end()));
    if (both.empty()) {
      throw SpecError(fmt::format("{}: {} is {} by {}, and {} by other settings: let them agree", place_, key.fact,
                                  fmt::join(allowed, " or "), key.key, fmt::join(chosen->second, " or ")));
    }
    chosen->second = both;
  }

  [[noreturn]] void refuse(const TargetKey& key, const json& value) const {
    std::vector<std::string> known;
    for (const auto& [ours, theirs] : key.values) {
      if (!theirs.is_null()) known.push_back(plain_text(theirs));
    }
    throw SpecError(fmt::format("{}: {} is {}, which is not modelled: give {}", place_, key.key, plain_text(value),
                                known.empty() ? "none" : fmt::format("{}", fmt::join(known, " or "))));
  }

  void learn_chosen() {
    for (const auto& [fact, values] : chosen_) {
      if (values.size() == 1) learn(facts_, fact, plain_value(*values.begin()), place_);
    }
  }

  void take_absent(const TargetKey& key) {
    if (key.fact.empty() || !key.read || !fact_at(facts_, key.fact).is_null()) return;
    if (!holds(key.when, facts_)) {
      if (!key.otherwise.is_null()) facts_[key.fact] = key.otherwise;
      return;
    }
    if (key.absent.is_null()) return;
    facts_[key.fact] = table_value(key.absent, facts_);
    solve(facts_, place_);
  }

  void take_implied() {
    for (const ImpliedFact& implied : target_.implied) {
      const json value = table_value(implied.value, facts_);
      if (implied_of(target_, facts_, implied.fact) == &implied && !value.is_null())
        learn(facts_, implied.fact, value, place_);
      solve(facts_, place_);
    }
  }

  void check_conflicts() const {
    for (const TargetConflict& conflict : target_.conflicts) {
      if (std::ranges::all_of(conflict.when, [&](const FactCondition& when) { return holds(when, facts_); }))
        throw SpecError(fmt::format("{}: {}", place_, conflict.say));
    }
  }

  std::vector<std::string> ignored() const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : settings_) {
      if (std::ranges::find(target_.keys, key, &TargetKey::key) == target_.keys.end()) keys.push_back(key);
    }
    return keys;
  }

  const Target& target_;
  const Settings& settings_;
  Facts facts_;
  const std::string& place_;
  std::map<std::string, std::set<std::string>> chosen_;  ///< [fact] texts that all keys so far allow
};

}  // namespace

Imported import_settings(const Target& target, const Settings& settings, Facts known, const std::string& place) {
  return Importer(target, settings, std::move(known), place).run();
}

int known_settings(const Target& target, const Settings& settings) {
  return static_cast<int>(std::ranges::count_if(settings, [&](const auto& setting) {
    return std::ranges::find(target.keys, setting.first, &TargetKey::key) != target.keys.end();
  }));
}

}}  // namespace plumb::planner
