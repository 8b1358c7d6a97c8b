#pragma once
// Reads Plumb's own JSON files. Every key is asked for by name and type, and a key that nobody asked for is refused
// with the nearest known one. Every error says file, path in the file, and remedy.
//
//   const nlohmann::json document = parse_json(text, "cluster.json");
//   StrictObject cluster(document, "cluster.json");
//   const std::int64_t devices = cluster.positive_integer("devices");
//   StrictObject node = cluster.object("node");
//   ...
//   node.finish();
//   cluster.finish();

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace plumb { inline namespace schedules {

/// Returns the document. Throws SpecError "FILE: line L, column C: ..." if it is truncated, has trailing text, is not
/// JSON, or has a number that is larger than any.
nlohmann::json parse_json(std::string_view text, const std::string& file);

/// Returns "line L, column C: ...": where and why `text` cannot be read as JSON, with the remedy. It is for text that
/// nlohmann has refused.
std::string json_fault(std::string_view text);

/// A number and the place where it was seen; `source` is empty where the file gives a plain number.
struct SourcedNumber {
  double value = 0;
  std::string source;
};

/// A view of one JSON object; the document must outlive it. All readers throw SpecError if the key is missing (unless
/// the reader is ..._or), has the wrong type or lies out of range. Any number is 0, or from 1e-30 to 1e30 in
/// size.
class StrictObject {
 public:
  static constexpr std::int64_t kLargestCount = std::int64_t{1} << 53;  ///< doubles are exact up to here

  /// `place` is the file, or "FILE: path.to.object". Throws SpecError if `value` is not an object.
  StrictObject(const nlohmann::json& value, std::string place);

  bool has(std::string_view key);  ///< true if present and not null; the key then counts as known
  const std::string& place() const { return place_; }

  std::string text(std::string_view key);
  std::string text_or(std::string_view key, std::string_view fallback);
  bool boolean(std::string_view key);
  bool boolean_or(std::string_view key, bool fallback);
  /// These read a whole number of at most `largest`: 1 or more, or (non_negative) 0 or more.
  std::int64_t positive_integer(std::string_view key, std::int64_t largest = kLargestCount);
  std::int64_t positive_integer_or(std::string_view key, std::int64_t fallback, std::int64_t largest = kLargestCount);
  std::int64_t non_negative_integer(std::string_view key, std::int64_t largest = kLargestCount);
  std::int64_t non_negative_integer_or(std::string_view key, std::int64_t fallback,
                                       std::int64_t largest = kLargestCount);
  double positive_number(std::string_view key);  ///< above 0
  double non_negative_number(std::string_view key);
  double fraction(std::string_view key);                                              ///< above 0, at most 1
  std::string choice(std::string_view key, const std::vector<std::string>& allowed);  ///< one of `allowed`
  /// Each of the number readers also accepts {"value": n, "source": "..."}; these two return the source as well.
  SourcedNumber positive_sourced(std::string_view key);
  SourcedNumber non_negative_sourced(std::string_view key);

  StrictObject object(std::string_view key);
  std::vector<StrictObject> objects(std::string_view key);  ///< an array of objects
  std::vector<std::int64_t> integers(std::string_view key);
  const nlohmann::json& raw(std::string_view key);  ///< returns the value of any type

  /// Throws SpecError naming the first key that nobody asked for, and the nearest key that was asked for.
  void finish() const;

  /// Throws SpecError "PLACE.key: message".
  [[noreturn]] void fail(std::string_view key, std::string_view message) const;

 private:
  std::string place_of(std::string_view key) const;
  bool is_there(std::string_view key);
  /// Tells a record of forms, if there is one (form_record.h), that the key is read as a value of that schema.
  void note(std::string_view key, const nlohmann::ordered_json& form) const;
  std::string string_of(std::string_view key);
  const nlohmann::json& required(std::string_view key);
  SourcedNumber number(std::string_view key, double smallest, bool smallest_allowed, std::string_view remedy);
  std::int64_t integer(std::string_view key, std::int64_t smallest, std::int64_t largest, std::string_view remedy);

  const nlohmann::json* value_;
  std::string place_;
  std::vector<std::string> known_;
};

}}  // namespace plumb::schedules
