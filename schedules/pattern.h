#pragma once
// Regular expressions that users write. Matching takes time in proportion to the text, whatever the expression (RE2: no
// backtracking, so neither look-ahead nor references back).
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
  /// Letters match in any case. Throws SpecError with the remedy if it is no regular expression, or too large a one,
  /// behind the `place` where it was given.
  explicit Pattern(std::string_view expression, std::string_view place = "");

  bool found_in(std::string_view text) const;

  /// The first match and what its brackets hold (empty where they took no part); nothing where there is no match.
  std::vector<std::string> groups_in(std::string_view text) const;

  /// The text without any of its matches.
  std::string removed_from(std::string_view text) const;

 private:
  std::shared_ptr<const re2::RE2> engine_;
};

}}  // namespace plumb::schedules
