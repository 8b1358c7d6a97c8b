#pragma once
// Checks of the numbers on the command line.

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace plumb { inline namespace tools {

/// `plumb VERB --help` says this of counts.
inline constexpr const char* kCountsRead = "Counts may end in k, M or G, powers of 1024: --seq 8k is 8192.";

/// Rewrites "8k", "1M" and "2G" as whole numbers, and refuses a text that is no whole number from `least` to `most`.
CLI::Validator count_between(std::int64_t least, std::int64_t most);

/// Returns count_between(least, the largest value of Number).
template <typename Number>
auto count_of(std::int64_t least) {
  constexpr auto kMost = std::numeric_limits<std::conditional_t<sizeof(Number) < 8, Number, std::int64_t>>::max();
  return count_between(least, kMost);
}

/// These refuse a text that is no number above 0, or no number of 0 or more.
CLI::Validator above_zero();
CLI::Validator zero_or_more();

/// Adds a check to every option of `app` and its verbs that takes a number: the number is finite, and whole where whole
/// numbers are counted. The caller adds all options before.
void require_numbers(CLI::App& app);

}}  // namespace plumb::tools
