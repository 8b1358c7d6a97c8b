#pragma once
// The layouts among which a search chooses: the values that a user allows for each key.
//
//   parse_layout_space("tp=2|4|8,pp=..16,mbs=1")    // tp one of three, pp at most 16, mbs 1, other keys open
//
// A file says the same as JSON: {"tp": [2, 4, 8], "pp": "..16", "mbs": 1}.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/layout.h"

namespace plumb { inline namespace planner {

/// The values that a key may have.
template <typename Value>
struct Values {
  std::vector<Value> named;           ///< ascending, those that the user lists; empty: all that are open
  std::optional<std::int64_t> least;  ///< of numbers that are open
  std::optional<std::int64_t> most;

  bool is_open() const { return named.empty() && !least && !most; }

  bool holds(const Value& value) const {
    if (!named.empty()) return std::ranges::find(named, value) != named.end();
    if constexpr (std::integral<Value>) return value >= least.value_or(value) && value <= most.value_or(value);
    return true;
  }

  /// Returns the values that are named, or those of `open` that lie within the bounds.
  std::vector<Value> of(std::vector<Value> open) const {
    if (!named.empty()) return named;
    std::erase_if(open, [&](const Value& value) { return !holds(value); });
    return open;
  }

  friend bool operator==(const Values&, const Values&) = default;
};

struct LayoutSpace : LayoutKeys<Values> {
  LayoutSpace() = default;
  /// Allows what the request answers alone, and all for what it leaves open.
  LayoutSpace(const LayoutRequest& request);

  /// True: all that Plumb prices is open, and not only what is usual (search/layout_choices.h).
  bool wide = false;

  friend bool operator==(const LayoutSpace&, const LayoutSpace&) = default;
};

/// Reads the keys of parse_layout(), each with one value, with a list of values ("tp=2|4|8"), or with bounds of a number
/// ("pp=..16", "pp=4..", "pp=4..16"). Throws SpecError as parse_layout does, and naming bounds of a key that is no
/// number, or that hold none.
LayoutSpace parse_layout_space(std::string_view text);

/// Reads a JSON object with the keys of a plan's layout, each with a value, an array of values, or bounds as a text.
/// `split` is an array of layers, or of such arrays.
LayoutSpace parse_layout_space_file(std::string_view text, const std::string& file);

/// Returns the layouts that both spaces hold. Throws SpecError naming a key that both give.
LayoutSpace joined(LayoutSpace space, const LayoutSpace& other);

/// Returns the inverse of parse_layout_space().
std::string to_text(const LayoutSpace& space);

/// Returns the keys that have one value.
LayoutRequest fixed_keys(const LayoutSpace& space);

/// True if every key of the layout has a value that the space allows.
bool holds(const LayoutSpace& space, const Layout& layout);

/// True if the space names values of every key that `keys` answers.
bool names_all(const LayoutSpace& space, const LayoutRequest& keys);

}}  // namespace plumb::planner
