#include "planner/exchange/facts/derived_facts.h"

#include <utility>

#include "planner/exchange/facts/derived_fact.h"

namespace plumb { inline namespace planner {
namespace {

template <class Visit>
void visit_derived(const Visit& visit) {
  for (const auto& family :
       {batch_facts(), shard_facts(), stage_facts(), gradient_facts(), recompute_facts(), model_facts()}) {
    for (const DerivedFact& fact : family) visit(fact);
  }
}

}  // namespace

void add_derived(Facts& facts) {
  Facts derived;
  visit_derived([&](const DerivedFact& fact) {
    if (auto value = fact.derive(facts)) derived[fact.name] = *value;
  });
  for (auto& [name, value] : derived) facts.try_emplace(name, std::move(value));
}

nlohmann::json known_or_derived(const Facts& facts, std::string_view name) {
  nlohmann::json value = fact_at(facts, name);
  visit_derived([&](const DerivedFact& fact) {
    if (fact.name == name && value.is_null()) value = fact.derive(facts).value_or(nlohmann::json());
  });
  return value;
}

std::string_view remedy_of(std::string_view name) {
  std::string_view remedy;
  visit_derived([&](const DerivedFact& fact) {
    if (fact.name == name) remedy = fact.remedy;
  });
  return remedy;
}

std::string_view decider_of(std::string_view name) {
  std::string_view decider = name;
  visit_derived([&](const DerivedFact& fact) {
    if (fact.name == name && !fact.decider.empty()) decider = fact.decider;
  });
  return decider;
}

void solve(Facts& facts, const std::string& place) {
  // Each round learns at least one of the facts, or is the last.
  for (Facts before; before != facts;) {
    before = facts;
    visit_derived([&](const DerivedFact& fact) {
      const nlohmann::json value = fact_at(facts, fact.name);
      if (value.is_null()) return;
      Learner learner(facts, value, place);
      fact.solve(learner);
    });
  }
}

}}  // namespace plumb::planner
