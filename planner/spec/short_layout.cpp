#include "planner/spec/short_layout.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/spec/layout_keys.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns the words of the degrees above 1.
std::vector<std::string> degree_words(const Layout& layout) {
  std::vector<std::string> words;
  const auto add = [&words](std::string_view name, int degree) {
    if (degree > 1) words.push_back(fmt::format("{}{}", name, degree));
  };
  add("TP", layout.tensor);
  if (layout.sequence_parallel) words.emplace_back("SP");
  add("PP", layout.pipeline);
  if (layout.chunks > 1) {
    if (layout.pipeline == 1) words.emplace_back("PP1");
    words.back() += fmt::format("x{}", layout.chunks);
  }
  add("CP", layout.context);
  add("EP", layout.expert);
  add("ETP", layout.expert_tensor);
  add("DP", layout.data);
  if (words.empty()) words.emplace_back("DP1");
  if (layout.zero > 0) words.push_back(fmt::format("ZeRO-{}", layout.zero));
  return words;
}

}  // namespace

std::string short_text(const Layout& layout) {
  constexpr std::array<std::string_view, 9> kSpelled{"dp", "tp", "pp", "cp", "ep", "etp", "v", "zero", "sp"};
  std::vector<std::string> words = degree_words(layout);
  const Layout usual{.schedule = layout.chunks > 1 ? "interleaved" : "1f1b"};
  visit_layout_keys([&](std::string_view key, auto answer) {
    if (std::ranges::find(kSpelled, key) == kSpelled.end() && layout.*answer != usual.*answer)
      words.push_back(fmt::format("{}={}", key, value_text(layout.*answer)));
  });
  return fmt::format("{}", fmt::join(words, " "));
}

}}  // namespace plumb::planner
