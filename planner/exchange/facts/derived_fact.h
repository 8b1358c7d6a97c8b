#pragma once
// A derived fact, and the families of them (exchange/facts/derived_facts.h). A fact has two directions: a run
// determines it, and it determines what else is not known of a run.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "planner/exchange/facts/facts.h"

namespace plumb { inline namespace planner {

/// Learns facts from a derived one, where enough of the others is known.
class Learner {
 public:
  Learner(Facts& facts, const nlohmann::json& value, const std::string& place)
      : facts_(facts), value_(value), place_(place) {}

  const Facts& facts() const { return facts_; }
  const nlohmann::json& value() const { return value_; }
  const std::string& place() const { return place_; }
  std::optional<std::int64_t> count() const {
    return value_.is_number_integer() ? std::optional(value_.get<std::int64_t>()) : std::nullopt;
  }
  void learn(const char* name, const nlohmann::json& value) { planner::learn(facts_, name, value, place_); }

  /// Learns whole / part. Throws SpecError if it is not whole; `what` says so in words.
  void learn_quotient(const char* name, std::int64_t whole, std::int64_t part, std::string_view what);

 private:
  Facts& facts_;
  const nlohmann::json& value_;
  const std::string& place_;
};

struct DerivedFact {
  const char* name;
  std::optional<nlohmann::json> (*derive)(const Facts&);  ///< nothing for runs that do not have the fact
  void (*solve)(Learner&);
  std::string_view remedy;        ///< change with which a run has the fact; empty: every run has it
  std::string_view decider = {};  ///< fact of the run that decides whether it has the fact
};

/// Returns the product; nothing if a fact is not known.
std::optional<std::int64_t> product(const Facts& facts, std::initializer_list<const char*> names);

std::optional<nlohmann::json> as_fact(std::optional<std::int64_t> count);

bool is_true(const Facts& facts, std::string_view name);

/// These stand in for a direction that a fact does not have.
std::optional<nlohmann::json> derive_nothing(const Facts& facts);
void solve_nothing(Learner& learner);

std::span<const DerivedFact> batch_facts();
std::span<const DerivedFact> shard_facts();
std::span<const DerivedFact> stage_facts();
std::span<const DerivedFact> gradient_facts();
std::span<const DerivedFact> recompute_facts();
std::span<const DerivedFact> model_facts();

}}  // namespace plumb::planner
