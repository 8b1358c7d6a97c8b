#include "tools/option_numbers.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace plumb { inline namespace tools {
namespace {

/// Larger than what any option counts or measures, in any of its units; what is made of it stays finite.
constexpr double kLargestOption = 1e15;

CLI::Validator number_that(const char* wanted, const char* kind, std::function<bool(double)> fits) {
  return {[wanted, fits = std::move(fits)](const std::string& text) {
            double number = 0;
            const bool is_number = CLI::detail::lexical_cast(text, number) && std::isfinite(number);
            return is_number && fits(number) ? "" : fmt::format("\"{}\" is not {}: give one", text, wanted);
          },
          kind};
}

std::string whole_number_fault(std::string& text) {
  std::int64_t whole = 0;
  const bool is_whole = CLI::detail::lexical_cast(text, whole);
  if (!is_whole) return fmt::format("\"{}\" is not a whole number: give one", text);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();  // what does not fit is read as that
  return whole < kMost && whole > -kMost ? "" : fmt::format("{} is more than can be counted: give less", text);
}

std::string count_fault(std::string& text) {
  std::uint64_t count = 0;
  const bool is_count = !text.starts_with('-') && CLI::detail::lexical_cast(text, count);
  if (!is_count) return fmt::format("\"{}\" is not a whole number of 0 or more: give one", text);
  return count < std::numeric_limits<std::uint64_t>::max() ? "" : fmt::format("{} is more than fits: give less", text);
}

}  // namespace

CLI::Validator above_zero() {
  return number_that("a number above 0", "POSITIVE", [](double number) { return number > 0; });
}

CLI::Validator zero_or_more() {
  return number_that("a number of 0 or more", "NONNEGATIVE", [](double number) { return number >= 0; });
}

void require_numbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type.starts_with("FLOAT"))
      option->check(number_that("a number of at most 1e15", "",
                                [](double number) { return std::abs(number) <= kLargestOption; }));
    if (type.starts_with("INT")) option->check(CLI::Validator(whole_number_fault, ""));
    if (type.starts_with("UINT")) option->check(CLI::Validator(count_fault, ""));
  }
  for (CLI::App* verb : app.get_subcommands({})) require_numbers(*verb);
}

}}  // namespace plumb::tools
