#include "planner/spec/layer_pattern.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns the flag of a letter; null for an unknown one.
bool* part_of_letter(LayerParts& parts, char letter) {
  switch (letter) {
    case 'M':
      return &parts.states;
    case '*':
      return &parts.attention;
    case '-':
      return &parts.mlp;
    case 'E':
      return &parts.experts;
    default:
      return nullptr;
  }
}

LayerParts layer_of(std::string_view word, const std::string& place) {
  LayerParts parts;
  for (const char letter : word) {
    bool* const part = part_of_letter(parts, letter);
    if (part == nullptr)
      throw SpecError(fmt::format("{}: '{}' is no kind of layer: give M, *, - and E, a word a layer", place, letter));
    if (*part) throw SpecError(fmt::format("{}: \"{}\" names one part twice: give each once", place, word));
    *part = true;
  }
  if (parts.mlp && parts.experts)
    throw SpecError(
        fmt::format("{}: \"{}\" has an MLP beside experts: give one, and shared_ffn for a shared expert", place, word));
  return parts;
}

std::string word_of(const LayerParts& parts) {
  std::string word;
  if (parts.states) word += 'M';
  if (parts.attention) word += '*';
  if (parts.mlp) word += '-';
  if (parts.experts) word += 'E';
  return word;
}

}  // namespace

std::vector<LayerParts> layer_pattern(std::string_view text, const std::string& place) {
  std::vector<LayerParts> layers;
  while (true) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    layers.push_back(layer_of(text.substr(begin, end - begin), place));
    text.remove_prefix(end);
  }
  if (layers.empty())
    throw SpecError(fmt::format("{}: there are no layers: give a word for each, as in \"M- *-\"", place));
  return layers;
}

std::string layer_pattern_text(const std::vector<LayerParts>& layers) {
  std::size_t period = 1;
  const auto repeats = [&](std::size_t count) {
    for (std::size_t i = count; i < layers.size(); ++i)
      if (layers[i] != layers[i - count]) return false;
    return layers.size() % count == 0;
  };
  while (period < layers.size() && !repeats(period)) ++period;
  std::string text;
  for (std::size_t i = 0; i < std::min(period, layers.size()); ++i) text += (i > 0 ? " " : "") + word_of(layers[i]);
  return text;
}

}}  // namespace plumb::planner
