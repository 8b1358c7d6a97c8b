#include "tools/command_line/option_values.h"

#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace plumb { inline namespace tools {
namespace {

/// Returns the factor of a suffix, or nothing if it is no suffix of a count.
std::optional<std::int64_t> factor_of(std::string_view suffix) {
  if (suffix.empty()) return 1;
  for (const auto& [name, shift] : {std::pair{"k", 10}, {"K", 10}, {"M", 20}, {"G", 30}}) {
    if (suffix == name) return std::int64_t{1} << shift;
  }
  return std::nullopt;
}

std::string refusal_of(std::string_view text, std::int64_t least, std::int64_t most) {
  const bool open = most >= std::numeric_limits<std::int32_t>::max();
  return fmt::format("\"{}\" cannot be: give a whole number of {}, as in {} or 8k", text,
                     open ? fmt::format("{} or more", least) : fmt::format("{} to {}", least, most), least + 1);
}

/// This number is larger than any value that an option may sensibly have in its unit, and small enough that the values
/// computed from it stay finite.
constexpr double kLargestOption = 1e15;

CLI::Validator number_that(const char* wanted, const char* kind, std::function<bool(double)> fits) {
  return {[wanted, fits = std::move(fits)](const std::string& text) {
            double number = 0;
            const bool is_number = CLI::detail::lexical_cast(text, number) && std::isfinite(number);
            return is_number && fits(number) ? "" : fmt::format("\"{}\" is not {}: give one", text, wanted);
          },
          kind};
}

/// Returns the fault of a whole number, since the library reads a number that is too large as the largest one, and "-1"
/// as a large count.
template <typename Number>
std::string whole_number_fault(std::string& text) {
  constexpr Number kMost = std::numeric_limits<Number>::max();
  Number number = 0;
  const bool is_whole = (std::is_signed_v<Number> || !text.starts_with('-')) && CLI::detail::lexical_cast(text, number);
  if (!is_whole)
    return fmt::format("\"{}\" is not a whole number{}: give one", text,
                       std::is_signed_v<Number> ? "" : " of 0 or more");
  const bool fits = number < kMost && (std::is_unsigned_v<Number> || number > std::numeric_limits<Number>::min());
  return fits ? "" : fmt::format("{} is beyond what can be counted: give less", text);
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
    if (type.starts_with("INT")) option->check(CLI::Validator(whole_number_fault<std::int64_t>, ""));
    if (type.starts_with("UINT")) option->check(CLI::Validator(whole_number_fault<std::uint64_t>, ""));
  }
  for (CLI::App* verb : app.get_subcommands({})) require_numbers(*verb);
}

CLI::Validator count_between(std::int64_t least, std::int64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) -> std::string {
        std::int64_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        const auto factor = factor_of({end, static_cast<std::size_t>(text.data() + text.size() - end)});
        const bool is_read = error == std::errc() && factor.has_value();
        const bool is_huge = error == std::errc::result_out_of_range ||
                             (is_read && number > std::numeric_limits<std::int64_t>::max() / *factor);
        if (is_huge || (is_read && number * *factor > most))
          return fmt::format("{} is beyond what can be counted: give {} at most", text, most);
        if (!is_read || number * *factor < least) return refusal_of(text, least, most);
        text = fmt::format("{}", number * *factor);
        return {};
      },
      "");
}

}}  // namespace plumb::tools
