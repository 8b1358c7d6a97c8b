#include "tools/option_values.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace plumb { inline namespace tools {
namespace {

/// The factor of a suffix; nothing for what is none.
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

}  // namespace

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
