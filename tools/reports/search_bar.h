#pragma once
// How far a search of layouts is.

#include <chrono>
#include <optional>

#include "planner/search/search.h"

namespace plumb { inline namespace tools {

/// A bar on stderr (tools/io/console.h), with the best layout so far. It is there where a person watches stderr and the
/// search has lasted a second. It fills as the least value that a layout may still have comes near the best.
class SearchBar {
 public:
  void show(const SearchProgress& progress);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point next_ = Clock::now() + std::chrono::seconds{1};  ///< before which nothing is drawn
  bool drawn_ = false;
};

}}  // namespace plumb::tools
