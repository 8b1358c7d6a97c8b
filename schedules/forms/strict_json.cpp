#include "schedules/forms/strict_json.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/form_record.h"
#include "schedules/forms/json_text.h"
#include "schedules/limits.h"
#include "schedules/nearest_name.h"

namespace plumb { inline namespace schedules {
namespace {

using nlohmann::json;

/// Hears a document without keeping any of it, and notes where the parser stops. It also hears of a number that is too
/// large, which the exception does not place.
class FaultFinder : public nlohmann::json_sax<json> {
 public:
  bool null() override { return heard(); }
  bool boolean(bool) override { return heard(); }
  bool number_integer(number_integer_t) override { return heard(); }
  bool number_unsigned(number_unsigned_t) override { return heard(); }
  bool number_float(number_float_t, const string_t&) override { return heard(); }
  bool string(string_t&) override { return heard(); }
  bool binary(binary_t&) override { return heard(); }
  bool start_object(std::size_t) override { return heard(); }
  bool key(string_t&) override { return heard(); }
  bool end_object() override { return heard(); }
  bool start_array(std::size_t) override { return heard(); }
  bool end_array() override { return heard(); }
  bool parse_error(std::size_t end, const std::string& token, const json::exception& error) override {
    end_ = end;
    if (dynamic_cast<const json::out_of_range*>(&error) != nullptr) number_ = token;
    return false;
  }

  /// Returns "line L, column C: ...": where and why the parser stopped in `text`, with the remedy.
  std::string fault_in(std::string_view text) const {
    const std::size_t length = std::max<std::size_t>(number_.size(), 1);
    const std::size_t first = std::min(end_ - std::min(end_, length), text.size());
    const std::string_view before = text.substr(0, first);
    const auto line = 1 + std::ranges::count(before, '\n');
    const std::size_t column = first - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
    const std::string what = !number_.empty() ? fmt::format("{} is larger than any number: mend it here", number_)
                             : end_ > text.size()
                                 ? "the JSON ends too early: close what is open, or fetch the whole file"
                                 : "this is not JSON: mend it here";
    return fmt::format("line {}, column {}: {}", line, column, what);
  }

 protected:
  virtual bool heard() { return true; }

 private:
  std::size_t end_ = 0;
  std::string number_;
};

/// Returns the number of `{"value": n, "source": "..."}`, or the value itself.
const json& unwrap(const json& value) {
  const auto it = value.is_object() ? value.find("value") : value.end();
  return value.is_object() && it != value.end() ? *it : value;
}

/// Throws SpecError for a document that is too deep or too large, and for a key that one object has twice.
class BoundsCheck : public FaultFinder {
 public:
  explicit BoundsCheck(const std::string& file) : file_(file) {}

  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return open();
  }
  bool end_object() override {
    keys_.pop_back();
    return close();
  }
  bool key(string_t& key) override {
    if (!keys_.back().insert(key).second)
      throw SpecError(fmt::format("{}: one object has the key {} twice: keep one", file_, json_line(json(key))));
    return heard();
  }

 private:
  bool open() {
    if (++depth_ > kDeepestJson) {
      throw SpecError(
          fmt::format("{}: lists and objects stand in each other more than {} deep: nothing that Plumb reads "
                      "does; give the right file",
                      file_, kDeepestJson));
    }
    return heard();
  }
  bool close() {
    --depth_;
    return heard();
  }
  bool heard() override {
    if (++values_ <= kMostJsonValues) return true;
    throw SpecError(fmt::format("{}: more than {} values: nothing that Plumb reads has as many; give the right file",
                                file_, kMostJsonValues));
  }

  const std::string& file_;
  std::int64_t values_ = 0;
  int depth_ = 0;
  std::vector<std::unordered_set<std::string>> keys_;  ///< keys of the objects around
};

/// No quantity that Plumb reads, in any of its units, lies outside these; products of a few of them stay finite.
constexpr double kLargestNumber = 1e30, kSmallestNumber = 1e-30;

const nlohmann::ordered_json kTextForm{{"type", "string"}}, kBooleanForm{{"type", "boolean"}};

/// Returns the schema of a number; a record adds that it may stand beside its source.
nlohmann::ordered_json form_of_number(double smallest, bool smallest_allowed, double largest) {
  return {{"type", "number"}, {smallest_allowed ? "minimum" : "exclusiveMinimum", smallest}, {"maximum", largest}};
}

nlohmann::ordered_json form_of_count(std::int64_t smallest, std::int64_t largest) {
  return {{"type", "integer"}, {"minimum", smallest}, {"maximum", largest}};
}

}  // namespace

std::string json_fault(std::string_view text) {
  FaultFinder finder;
  json::sax_parse(text, &finder);
  return finder.fault_in(text);
}

json parse_json(std::string_view text, const std::string& file) {
  BoundsCheck bounds(file);
  if (!json::sax_parse(text, &bounds)) throw SpecError(fmt::format("{}: {}", file, bounds.fault_in(text)));
  return json::parse(text);
}

StrictObject::StrictObject(const json& value, std::string place) : value_(&value), place_(std::move(place)) {
  if (!value.is_object())
    throw SpecError(fmt::format("{}: a JSON object is wanted, not {}", place_, value.type_name()));
  if (FormRecord* record = FormRecord::current()) record->object_opened(place_, value_);
}

void StrictObject::fail(std::string_view key, std::string_view message) const {
  throw SpecError(fmt::format("{}: {}", place_of(key), message));
}

std::string StrictObject::place_of(std::string_view key) const {
  const bool is_file = place_.find(": ") == std::string::npos;
  return fmt::format("{}{}{}", place_, is_file ? ": " : ".", key);
}

bool StrictObject::has(std::string_view key) {
  if (FormRecord* record = FormRecord::current()) record->key_may_be_absent(place_, key);
  return is_there(key);
}

void StrictObject::note(std::string_view key, const nlohmann::ordered_json& form) const {
  if (FormRecord* record = FormRecord::current()) record->key_read(place_, value_, key, form);
}

bool StrictObject::is_there(std::string_view key) {
  if (std::ranges::find(known_, key) == known_.end()) known_.emplace_back(key);
  const auto it = value_->find(std::string(key));
  return it != value_->end() && !it->is_null();
}

const json& StrictObject::required(std::string_view key) {
  if (!is_there(key)) fail(key, "this key is missing: add it");
  return *value_->find(std::string(key));
}

const json& StrictObject::raw(std::string_view key) {
  note(key, FormRecord::kAnything);
  return required(key);
}

std::string StrictObject::text(std::string_view key) {
  note(key, kTextForm);
  return string_of(key);
}

std::string StrictObject::string_of(std::string_view key) {
  const json& value = required(key);
  if (!value.is_string()) fail(key, fmt::format("a string is wanted, not {}", value.type_name()));
  return value.get<std::string>();
}

std::string StrictObject::text_or(std::string_view key, std::string_view fallback) {
  note(key, kTextForm);
  return has(key) ? string_of(key) : std::string(fallback);
}

bool StrictObject::boolean(std::string_view key) {
  note(key, kBooleanForm);
  const json& value = required(key);
  if (!value.is_boolean()) fail(key, fmt::format("true or false is wanted, not {}", value.type_name()));
  return value.get<bool>();
}

bool StrictObject::boolean_or(std::string_view key, bool fallback) {
  note(key, kBooleanForm);
  return has(key) ? boolean(key) : fallback;
}

SourcedNumber StrictObject::number(std::string_view key, double smallest, bool smallest_allowed,
                                   std::string_view remedy) {
  const json& whole = required(key);
  const json& value = unwrap(whole);
  if (!value.is_number()) fail(key, fmt::format("a number is wanted, not {}", value.type_name()));
  SourcedNumber result{.value = value.get<double>()};
  const bool in_range = smallest_allowed ? result.value >= smallest : result.value > smallest;
  if (!in_range || !std::isfinite(result.value))
    fail(key, fmt::format("{} is out of range: give {}", result.value, remedy));
  if (std::abs(result.value) > kLargestNumber || (result.value != 0 && std::abs(result.value) < kSmallestNumber))
    fail(key, fmt::format("{} is out of range: nothing here is so {}; check the unit, and give {}", result.value,
                          std::abs(result.value) > 1 ? "large" : "small", remedy));
  if (whole.is_object()) {
    StrictObject sourced(whole, place_of(key));
    sourced.has("value");
    result.source = sourced.text_or("source", "");
    sourced.finish();
  }
  return result;
}

std::int64_t StrictObject::integer(std::string_view key, std::int64_t smallest, std::int64_t largest,
                                   std::string_view remedy) {
  note(key, form_of_count(smallest, largest));
  const double value = number(key, static_cast<double>(smallest), true, remedy).value;
  if (value > static_cast<double>(kLargestCount))
    fail(key, fmt::format("{} is more than 2^53, which no count here can be: give {}", value, remedy));
  if (value != std::floor(value)) fail(key, fmt::format("{} is not a whole number: give {}", value, remedy));
  if (value > static_cast<double>(largest))
    fail(key, fmt::format("{:.0f} is out of range: give at most {}", value, largest));
  return static_cast<std::int64_t>(value);
}

std::int64_t StrictObject::positive_integer(std::string_view key, std::int64_t largest) {
  return integer(key, 1, largest, "1 or more");
}
std::int64_t StrictObject::positive_integer_or(std::string_view key, std::int64_t fallback, std::int64_t largest) {
  note(key, form_of_count(1, largest));
  return has(key) ? positive_integer(key, largest) : fallback;
}
std::int64_t StrictObject::non_negative_integer(std::string_view key, std::int64_t largest) {
  return integer(key, 0, largest, "0 or more");
}
std::int64_t StrictObject::non_negative_integer_or(std::string_view key, std::int64_t fallback, std::int64_t largest) {
  note(key, form_of_count(0, largest));
  return has(key) ? non_negative_integer(key, largest) : fallback;
}
double StrictObject::positive_number(std::string_view key) {
  return positive_sourced(key).value;
}
double StrictObject::non_negative_number(std::string_view key) {
  return non_negative_sourced(key).value;
}
SourcedNumber StrictObject::positive_sourced(std::string_view key) {
  note(key, form_of_number(0, false, kLargestNumber));
  return number(key, 0, false, "a number above 0");
}
SourcedNumber StrictObject::non_negative_sourced(std::string_view key) {
  note(key, form_of_number(0, true, kLargestNumber));
  return number(key, 0, true, "0 or more");
}

double StrictObject::fraction(std::string_view key) {
  note(key, form_of_number(0, false, 1));
  const double value = number(key, 0, false, "a number above 0").value;
  if (value > 1) fail(key, fmt::format("{} is out of range: give a share above 0 and at most 1", value));
  return value;
}

std::string StrictObject::choice(std::string_view key, const std::vector<std::string>& allowed) {
  note(key, {{"enum", allowed}});
  std::string value = string_of(key);
  if (std::ranges::find(allowed, value) == allowed.end()) {
    const std::string nearest = nearest_name(value, allowed);
    fail(key, fmt::format("\"{}\" is none of {}{}", value, fmt::join(allowed, ", "),
                          nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest)));
  }
  return value;
}

StrictObject StrictObject::object(std::string_view key) {
  note(key, FormRecord::kObject);
  return {required(key), place_of(key)};
}

std::vector<StrictObject> StrictObject::objects(std::string_view key) {
  note(key, FormRecord::kObjects);
  const json& value = required(key);
  if (!value.is_array()) fail(key, fmt::format("an array is wanted, not {}", value.type_name()));
  std::vector<StrictObject> result;
  for (std::size_t i = 0; i < value.size(); ++i) {
    result.emplace_back(value[i], fmt::format("{}[{}]", place_of(key), i));
  }
  return result;
}

std::vector<std::int64_t> StrictObject::integers(std::string_view key) {
  note(key, {{"type", "array"}, {"items", {{"type", "integer"}}}});
  const json& value = required(key);
  const bool fits =
      value.is_array() && std::ranges::all_of(value, [](const json& item) { return item.is_number_integer(); });
  if (!fits) fail(key, "an array of whole numbers is wanted");
  return value.get<std::vector<std::int64_t>>();
}

void StrictObject::finish() const {
  if (FormRecord* record = FormRecord::current()) record->object_finished(place_);
  for (const auto& [key, value] : value_->items()) {
    if (std::ranges::find(known_, key) == known_.end()) {
      fail(key, fmt::format("this key is unknown: remove it, or {}", did_you_mean(key, known_)));
    }
  }
}

}}  // namespace plumb::schedules
