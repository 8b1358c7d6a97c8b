#pragma once
// A Pattern is a regular expression that a user writes. Matching takes time in proportion to the text, whatever the
// expression is: RE2 does not backtrack, and therefore has neither look-ahead nor references back.
//
//   Pattern("linear|mlp").found_in("Linear-3")                        -> true
//   Pattern("(\\d+) x (\\d+)").groups_in("8 x 200 Gb/s")              -> {"8 x 200", "8", "200"}

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace plumb { inline namespace schedules {

class Pattern {
 public:
  /// Letters match in any case. Throws SpecError if `expression` is no regular expression, or too large a one. The
  /// error's text has the remedy, behind the `place` where the expression was given.
  explicit Pattern(std::string_view expression, std::string_view place = "");

  bool found_in(std::string_view text) const;

  /// Returns the first match and the text that each of its groups holds (empty where a group took no part), or an empty
  /// list if there is no match.
  std::vector<std::string> groups_in(std::string_view text) const;

  /// Returns the text without any of its matches.
  std::string removed_from(std::string_view text) const;

 private:
  std::shared_ptr<const re2::RE2> engine_;
};

}}  // namespace plumb::schedules
