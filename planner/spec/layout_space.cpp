#include "planner/spec/layout_space.h"

#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/spec/layout_keys.h"
#include "schedules/error.h"
#include "schedules/forms/file_format.h"

namespace plumb { inline namespace planner {
namespace {

constexpr std::string_view kBounds = "..";

/// Calls visit(key, values, answer) for every key, split too.
template <class Space, class Visit>
void visit_values(Space& space, const LayoutRequest& request, const Visit& visit) {
  visit_layout_keys<Values, std::optional>(
      [&](std::string_view key, auto, auto values, auto question) { visit(key, space.*values, request.*question); });
  visit("split", space.split, request.split);
}

/// Adds the answers of the request to the values that the space names.
void name(LayoutSpace& space, const LayoutRequest& request) {
  visit_values(space, request, [](std::string_view, auto& values, const auto& answer) {
    if (!answer || std::ranges::find(values.named, *answer) != values.named.end()) return;
    values.named.push_back(*answer);
    if constexpr (std::totally_ordered<std::remove_cvref_t<decltype(*answer)>>)
      std::sort(values.named.begin(), values.named.end());  // flags have no ranges::sort
    else
      std::ranges::sort(values.named, {}, [](const auto& value) { return value_text(value); });
  });
}

/// Returns the request that gives one key one value.
LayoutRequest one_key(std::string_view key, std::string_view value) {
  return parse_layout(fmt::format("{}={}", key, value));
}

void bound(LayoutSpace& space, std::string_view key, std::string_view text) {
  const std::size_t dots = text.find(kBounds);
  const std::string_view least = text.substr(0, dots), most = text.substr(dots + kBounds.size());
  if (least.empty() && most.empty())
    throw SpecError(
        fmt::format("layout {}={}: there is no bound: give {}=..16, {}=4.. or leave the key out", key, text, key, key));
  const LayoutRequest low = one_key(key, least.empty() ? most : least),
                      high = one_key(key, most.empty() ? least : most);
  visit_values(space, low, [&](std::string_view, auto& values, const auto& answer) {
    using Value = std::remove_cvref_t<decltype(*answer)>;
    if (!answer) return;
    if constexpr (std::integral<Value> && !std::is_same_v<Value, bool>) {
      if (!least.empty()) values.least = *answer;
    } else {
      throw SpecError(fmt::format("layout {}={}: only numbers have bounds: list the values, as in A|B", key, text));
    }
  });
  visit_values(space, high, [&](std::string_view, auto& values, const auto& answer) {
    using Value = std::remove_cvref_t<decltype(*answer)>;
    if constexpr (std::integral<Value> && !std::is_same_v<Value, bool>) {
      if (!answer || most.empty()) return;
      values.most = *answer;
      if (values.least && *values.least > *values.most)
        throw SpecError(
            fmt::format("layout {}={}: no number lies between the bounds: write the smaller one first", key, text));
    }
  });
}

void allow(LayoutSpace& space, std::string_view key, std::string_view text) {
  if (text.find(kBounds) != std::string_view::npos) return bound(space, key, text);
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('|', start), text.size());
    name(space, one_key(key, text.substr(start, end - start)));
    start = end + 1;
  }
}

}  // namespace

LayoutSpace::LayoutSpace(const LayoutRequest& request) {
  name(*this, request);
}

LayoutSpace parse_layout_space(std::string_view text) {
  LayoutSpace space;
  for (const auto& [key, value] : layout_words(text)) allow(space, key, value);
  return space;
}

LayoutSpace parse_layout_space_file(std::string_view text, const std::string& file) {
  const nlohmann::json document = parse_file(FileForm::kPlan, text, file);
  if (!document.is_object()) return layout_from_json(document, file);  // which says so
  LayoutSpace space;
  for (const auto& [key, value] : document.items()) {
    if (value.is_string() && value.get_ref<const std::string&>().find(kBounds) != std::string::npos) {
      try {
        bound(space, key, value.get_ref<const std::string&>());
      } catch (const SpecError& error) {
        throw SpecError(fmt::format("{}: {}", file, error.what()));
      }
      continue;
    }
    const bool is_list = value.is_array() && (key != "split" || (!value.empty() && value.front().is_array()));
    if (is_list && value.empty())
      throw SpecError(fmt::format("{}: {} lists no value: give one, or leave the key out", file, key));
    for (const nlohmann::json& one : is_list ? value : nlohmann::json::array({value}))
      name(space, layout_from_json({{key, one}}, file));
  }
  return space;
}

LayoutSpace joined(LayoutSpace space, const LayoutSpace& other) {
  const auto join = [](std::string_view key, auto& values, const auto& others) {
    if (others.is_open()) return;
    if (!values.is_open()) throw SpecError(fmt::format("layout {}: the key is given twice: keep one", key));
    values = others;
  };
  visit_layout_keys<Values>([&](std::string_view key, auto, auto values) { join(key, space.*values, other.*values); });
  join("split", space.split, other.split);
  return space;
}

std::string to_text(const LayoutSpace& space) {
  std::vector<std::string> words;
  visit_values(space, {}, [&](std::string_view key, const auto& values, const auto&) {
    if (values.is_open()) return;
    std::vector<std::string> texts;
    for (const auto& value : values.named) texts.push_back(value_text(value));
    if (texts.empty())
      texts.push_back((values.least ? value_text(*values.least) : "") + std::string(kBounds) +
                      (values.most ? value_text(*values.most) : ""));
    words.push_back(fmt::format("{}={}", key, fmt::join(texts, "|")));
  });
  return fmt::format("{}", fmt::join(words, ","));
}

LayoutRequest fixed_keys(const LayoutSpace& space) {
  LayoutRequest fixed;
  visit_layout_keys<Values, std::optional>([&](std::string_view, auto, auto values, auto question) {
    if ((space.*values).named.size() == 1) fixed.*question = (space.*values).named.front();
  });
  if (space.split.named.size() == 1) fixed.split = space.split.named.front();
  return fixed;
}

bool holds(const LayoutSpace& space, const Layout& layout) {
  bool all = space.split.holds(layout.split);
  visit_layout_keys<Values>(
      [&](std::string_view, auto answer, auto values) { all = all && (space.*values).holds(layout.*answer); });
  return all;
}

bool names_all(const LayoutSpace& space, const LayoutRequest& keys) {
  bool all = true;
  visit_values(space, keys, [&](std::string_view, const auto& values, const auto& answer) {
    all = all && (!answer || !values.named.empty());
  });
  return all;
}

}}  // namespace plumb::planner
