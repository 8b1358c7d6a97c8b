#pragma once
// Reading Plumb's own JSON files: every key is asked for by name and type, and what nobody asked for is refused with
// the nearest known key. Every error says file, path in the file, and remedy.
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

/// The document, or SpecError "FILE: line L, column C: ..." (truncated, trailing text, not JSON, a number that is
/// larger than any).
nlohmann::json parse_json(std::string_view text, const std::string& file);

/// Returns "line L, column C: ...", where and why `text` cannot be read as JSON, with the remedy. For text that
/// nlohmann has refused.
std::string json_fault(std::string_view text);

/// A number and where it was seen; `source` is empty where the file gives a plain number.
struct SourcedNumber {
  double value = 0;
  std::string source;
};

/// A view of one JSON object; the document must outlive it. All readers throw SpecError if the key is missing (unless
/// the reader is optional_...), has the wrong type or lies out of range; a number of any is 0, or from 1e-30 to 1e30 in
/// size.
class StrictObject {
 public:
  static constexpr std::int64_t kLargestCount = std::int64_t{1} << 53;  ///< doubles are exact up to here

  /// `place` is the file, or "FILE: path.to.object". Throws SpecError if `value` is not an object.
  StrictObject(const nlohmann::json& value, std::string place);

  bool has(std::string_view key);  ///< present and not null; the key counts as known
  const std::string& place() const { return place_; }

  std::string text(std::string_view key);
  std::string text_or(std::string_view key, std::string_view fallback);
  bool boolean(std::string_view key);
  bool boolean_or(std::string_view key, bool fallback);
  /// 1 or more, at most `largest`.
  std::int64_t positive_integer(std::string_view key, std::int64_t largest = kLargestCount);
  std::int64_t positive_integer_or(std::string_view key, std::int64_t fallback, std::int64_t largest = kLargestCount);
  std::int64_t non_negative_integer(std::string_view key, std::int64_t largest = kLargestCount);
  std::int64_t non_negative_integer_or(std::string_view key, std::int64_t fallback,
                                       std::int64_t largest = kLargestCount);
  double positive_number(std::string_view key);  ///< above 0
  double non_negative_number(std::string_view key);
  double fraction(std::string_view key);                                              ///< above 0, at most 1
  std::string choice(std::string_view key, const std::vector<std::string>& allowed);  ///< one of these
  /// Any of the number readers accepts {"value": n, "source": "..."} as well; this one hands out the source.
  SourcedNumber positive_sourced(std::string_view key);
  SourcedNumber non_negative_sourced(std::string_view key);

  StrictObject object(std::string_view key);
  std::vector<StrictObject> objects(std::string_view key);  ///< an array of objects
  std::vector<std::int64_t> integers(std::string_view key);
  const nlohmann::json& raw(std::string_view key);  ///< whatever it is

  /// Throws SpecError naming the first key that nobody asked for and the nearest one that somebody did.
  void finish() const;

  /// SpecError "PLACE.key: message".
  [[noreturn]] void fail(std::string_view key, std::string_view message) const;

 private:
  std::string place_of(std::string_view key) const;
  const nlohmann::json& required(std::string_view key);
  SourcedNumber number(std::string_view key, double smallest, bool smallest_allowed, std::string_view remedy);
  std::int64_t integer(std::string_view key, std::int64_t smallest, std::int64_t largest, std::string_view remedy);

  const nlohmann::json* value_;
  std::string place_;
  std::vector<std::string> known_;
};

}}  // namespace plumb::schedules
