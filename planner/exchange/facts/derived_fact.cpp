#include "planner/exchange/facts/derived_fact.h"

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace planner {

using nlohmann::json;

void Learner::learn_quotient(const char* name, std::int64_t whole, std::int64_t part, std::string_view what) {
  if (part < 1 || whole % part != 0) {
    throw SpecError(fmt::format("{}: {}: {} is no multiple of {}", place_, what, whole, part));
  }
  learn(name, whole / part);
}

std::optional<std::int64_t> product(const Facts& facts, std::initializer_list<const char*> names) {
  std::int64_t result = 1;
  for (const char* name : names) {
    const auto factor = count_at(facts, name);
    if (!factor || *factor < 0 || *factor > std::int64_t{1} << 30) return std::nullopt;
    if (__builtin_mul_overflow(result, *factor, &result)) return std::nullopt;
  }
  return result;
}

std::optional<json> as_fact(std::optional<std::int64_t> count) {
  return count ? std::optional<json>(*count) : std::nullopt;
}

bool is_true(const Facts& facts, std::string_view name) {
  return fact_at(facts, name) == json(true);
}

std::optional<json> derive_nothing(const Facts& /*facts*/) {
  return std::nullopt;
}

void solve_nothing(Learner& /*learner*/) {}

}}  // namespace plumb::planner
