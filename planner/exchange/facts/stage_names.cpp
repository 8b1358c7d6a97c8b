#include "planner/exchange/facts/stage_names.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/whole_number.h"
#include "schedules/limits.h"

namespace plumb { inline namespace planner {
namespace {

constexpr std::string_view kLayer = "layers.";

/// Reads "x*3" and "(xy)*3" as their repetitions.
class LayoutReader {
 public:
  LayoutReader(std::string_view text, const std::string& place) : text_(text), place_(place) {}

  std::string read() {
    std::string all = sequence();
    if (at_ < text_.size()) fail();
    return all;
  }

 private:
  std::string sequence() {
    std::string read;
    while (at_ < text_.size() && text_[at_] != ')') {
      if (text_[at_] == ',' || text_[at_] == ' ') {
        ++at_;
        continue;
      }
      const std::string item = one();
      const std::size_t times = repetitions();
      if (read.size() + item.size() * times > static_cast<std::size_t>(kLargestStage)) fail();
      for (std::size_t i = 0; i < times; ++i) read += item;
    }
    return read;
  }

  std::string one() {
    if (text_[at_] != '(') {
      if (std::string_view("EtL|").find(text_[at_]) == std::string_view::npos) fail();
      return {text_[at_++]};
    }
    if (++depth_ > kDeepestJson) fail();
    ++at_;
    std::string inner = sequence();
    if (at_ >= text_.size()) fail();
    ++at_;
    --depth_;
    return inner;
  }

  std::size_t repetitions() {
    if (at_ >= text_.size() || text_[at_] != '*') return 1;
    const std::size_t start = ++at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    const auto times = whole_number<int>(text_.substr(start, at_ - start));
    if (!times || *times > kLargestStage) fail();
    return static_cast<std::size_t>(*times);
  }

  [[noreturn]] void fail() const {
    const bool prediction = at_ < text_.size() && text_[at_] == 'm';
    throw SpecError(fmt::format("{}: the pipeline layout \"{}\" cannot be read at letter {}: {}", place_, text_,
                                at_ + 1,
                                prediction ? "layers of multi-token prediction (m) are not modelled"
                                           : "give E, t, L and |, with (...)*N for repetitions"));
  }

  std::string_view text_;
  const std::string& place_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string megatron_layout(const std::vector<int>& split) {
  std::string layout = "E";
  for (std::size_t part = 0; part < split.size(); ++part) {
    if (part > 0) layout += '|';
    layout += split[part] == 1 ? "t" : fmt::format("t*{}", split[part]);
  }
  return layout + 'L';
}

std::vector<int> split_of_megatron(std::string_view layout, const std::string& place) {
  std::string stages = LayoutReader(layout, place).read();
  // A bar at the end closes the last stage.
  if (stages.ends_with('|')) stages.pop_back();
  std::vector<int> split{0};
  for (const char letter : stages) {
    if (letter == '|') split.push_back(0);
    if (letter == 't') ++split.back();
  }
  return split;
}

nlohmann::json torchtitan_modules(const std::vector<int>& split) {
  nlohmann::json parts = nlohmann::json::array();
  int layer = 0;
  for (const int layers : split) {
    nlohmann::json& names = parts.emplace_back(nlohmann::json::array());
    if (parts.size() == 1) names.push_back("tok_embeddings");
    for (int i = 0; i < layers; ++i) names.push_back(fmt::format("{}{}", kLayer, layer++));
  }
  for (const char* last : {"norm", "output"}) parts.back().push_back(last);
  return parts;
}

std::vector<int> split_of_torchtitan(const nlohmann::json& modules, const std::string& place) {
  std::vector<int> split;
  int next = 0;
  for (const nlohmann::json& names : modules) {
    split.push_back(0);
    for (const nlohmann::json& name : names) {
      const std::string text = name.is_string() ? name.get<std::string>() : "";
      if (!text.starts_with(kLayer)) continue;
      if (whole_number<int>(std::string_view(text).substr(kLayer.size())) != next) {
        throw SpecError(
            fmt::format("{}: module_fqns_per_model_part has {} where layers.{} follows: give the layers in "
                        "the order of the model",
                        place, text, next));
      }
      ++next;
      ++split.back();
    }
  }
  return split;
}

}}  // namespace plumb::planner
