#include "planner/onnx/einsum.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace planner {

std::optional<Einsum> einsum_of(const std::string& equation, const TensorShape& left, const TensorShape& right,
                                const std::string& place) {
  std::string text;
  std::ranges::copy_if(equation, std::back_inserter(text), [](char c) { return c != ' '; });
  const std::size_t comma = text.find(','), arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || text.find(',', comma + 1) != std::string::npos ||
      text.find("...") != std::string::npos)
    return std::nullopt;
  Einsum einsum{.left = text.substr(0, comma),
                .right = text.substr(comma + 1, arrow - comma - 1),
                .output = text.substr(arrow + 2)};
  std::map<char, std::int64_t> sizes;
  for (const auto& [labels, shape] : {std::pair(einsum.left, left), std::pair(einsum.right, right)}) {
    if (labels.size() != shape.size() || std::set<char>(labels.begin(), labels.end()).size() != labels.size())
      return std::nullopt;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (sizes.emplace(labels[i], shape[i]).first->second != shape[i])
        throw SpecError(
            fmt::format("{}: \"{}\" has two sizes for {}: export the model again", place, equation, labels[i]));
    }
  }
  for (const char label : einsum.output) {
    if (!sizes.contains(label)) return std::nullopt;
    einsum.shape.push_back(sizes[label]);
  }
  return einsum;
}

}}  // namespace plumb::planner
