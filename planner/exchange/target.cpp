#include "planner/exchange/target.h"

#include <algorithm>

#include "planner/exchange/facts/derived_facts.h"
#include "planner/exchange/forms/plain_value.h"
#include "schedules/forms/strict_json.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

constexpr std::string_view kWholeModel = "model";

double number_of(StrictObject& object, std::string_view key) {
  const json& value = object.raw(key);
  if (!value.is_number()) object.fail(key, "a number is wanted");
  return value.get<double>();
}

FactCondition condition_from(StrictObject object) {
  FactCondition condition{.fact = object.text("fact"), .above = number_of(object, "above")};
  object.finish();
  return condition;
}

std::optional<FactCondition> when_of(StrictObject& object) {
  if (!object.has("when")) return std::nullopt;
  return condition_from(object.object("when"));
}

json raw_or_null(StrictObject& object, std::string_view key) {
  return object.has(key) ? object.raw(key) : json();
}

TargetKey key_from(StrictObject object) {
  TargetKey key{.key = object.text("key"), .fact = object.text_or("fact", "")};
  if (object.has("values")) {
    for (const auto& [ours, theirs] : object.raw("values").items()) key.values.emplace_back(ours, theirs);
  }
  if (object.has("also_read")) {
    for (const auto& [theirs, ours] : object.raw("also_read").items()) {
      for (const json& one : ours.is_array() ? ours : json::array({ours}))
        key.also_read.emplace_back(plain_value(theirs), one.get<std::string>());
    }
  }
  key.constant = raw_or_null(object, "constant");
  key.absent = raw_or_null(object, "absent");
  if (object.has("above")) key.above = number_of(object, "above");
  key.written = object.boolean_or("written", true);
  key.read = object.boolean_or("read", true);
  key.refused = object.text_or("refused", "");
  key.when = when_of(object);
  key.otherwise = raw_or_null(object, "otherwise");
  object.finish();
  return key;
}

ImpliedFact implied_from(StrictObject object) {
  ImpliedFact implied{.fact = object.text("fact")};
  implied.value = raw_or_null(object, "is");
  implied.when = when_of(object);
  implied.because = object.text_or("because", "");
  object.finish();
  return implied;
}

UnsaidFacts unsaid_from(StrictObject object) {
  UnsaidFacts unsaid{.say = object.text("say")};
  for (const json& fact : object.raw("facts")) unsaid.facts.push_back(fact.get<std::string>());
  object.finish();
  return unsaid;
}

TargetConflict conflict_from(StrictObject object) {
  TargetConflict conflict{.say = object.text("say")};
  for (const StrictObject& when : object.objects("when")) conflict.when.push_back(condition_from(when));
  object.finish();
  return conflict;
}

std::map<std::string, std::string, std::less<>> names_from(StrictObject& object, std::string_view key) {
  std::map<std::string, std::string, std::less<>> names;
  if (!object.has(key)) return names;
  for (const auto& [name, value] : object.raw(key).items()) names[name] = value.get<std::string>();
  return names;
}

LoggedForm logged_from(StrictObject object) {
  LoggedForm form{.begin = object.text("begin"), .end = object.text_or("end", "")};
  form.renamed = names_from(object, "renamed");
  form.negated = names_from(object, "negated");
  form.only_with = names_from(object, "only_with");
  form.unless_equal = names_from(object, "unless_equal");
  form.facts = names_from(object, "facts");
  object.finish();
  return form;
}

template <class Item>
std::vector<Item> list_of(StrictObject& object, std::string_view key, Item (*read)(StrictObject)) {
  std::vector<Item> items;
  if (!object.has(key)) return items;
  for (const StrictObject& item : object.objects(key)) items.push_back(read(item));
  return items;
}

SettingsForm form_named(const std::string& name) {
  using enum SettingsForm;
  return name == "arguments" ? kArguments
         : name == "python"  ? kPython
         : name == "toml"    ? kToml
         : name == "yaml"    ? kYaml
                             : kJson;
}

}  // namespace

bool holds(const std::optional<FactCondition>& condition, const Facts& facts) {
  if (!condition) return true;
  const json& value = fact_at(facts, condition->fact);
  return value.is_number() && value.get<double>() > condition->above;
}

json table_value(const json& value, const Facts& facts) {
  return value.is_object() ? known_or_derived(facts, value.at("as").get<std::string>()) : value;
}

std::string stack_of(const Target& target, const Facts& facts) {
  const auto found = std::ranges::find_if(target.stacks, [&](const auto& stack) { return holds(stack.second, facts); });
  return found == target.stacks.end() ? "" : found->first;
}

const ImpliedFact* implied_of(const Target& target, const Facts& facts, std::string_view fact) {
  const auto found = std::ranges::find_if(
      target.implied, [&](const ImpliedFact& implied) { return implied.fact == fact && holds(implied.when, facts); });
  return found == target.implied.end() ? nullptr : &*found;
}

bool is_unsaid(const Target& target, std::string_view fact) {
  return std::ranges::any_of(target.unsaid, [&](const UnsaidFacts& unsaid) {
    return std::ranges::any_of(unsaid.facts, [&](const std::string& one) {
      return one == fact || (one == kWholeModel && fact.starts_with("model."));
    });
  });
}

Target parse_target(std::string_view text, const std::string& file) {
  const json document = parse_json(text, file);
  StrictObject object(document, file);
  Target target{.name = object.text("name"), .note = object.text("note"), .source = object.text("source")};
  target.form = form_named(object.choice("form", {"arguments", "json", "python", "toml", "yaml"}));
  target.launch = object.text("launch");
  if (object.has("logged")) target.logged = logged_from(object.object("logged"));
  for (StrictObject stack : object.objects("stacks")) {
    std::string name = stack.text("stack");
    target.stacks.emplace_back(std::move(name), when_of(stack));
    stack.finish();
  }
  target.keys = list_of(object, "keys", key_from);
  target.implied = list_of(object, "implied", implied_from);
  target.unsaid = list_of(object, "unsaid", unsaid_from);
  target.conflicts = list_of(object, "conflicts", conflict_from);
  object.finish();
  return target;
}

}}  // namespace plumb::planner
