#include "tools/inputs/preset_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>

#include "schedules/nearest_name.h"
#include "schedules/spelling.h"

namespace plumb { inline namespace tools {
namespace {

constexpr std::array kClusters = {
    Spelling{"a10080gb", "a100"},
    Spelling{"a100sxm", "a100"},
    Spelling{"a100sxm4", "a100"},
    Spelling{"a100sxm480gb", "a100"},
    Spelling{"a100sxm80gb", "a100"},
    Spelling{"a10080gbsxm", "a100"},
    Spelling{"a10080gbsxm4", "a100"},
    Spelling{"dgxa100", "a100"},
    Spelling{"hgxa100", "a100"},
    Spelling{"a100sxm40gb", "a100-40gb"},
    Spelling{"a100sxm440gb", "a100-40gb"},
    Spelling{"a10040gbsxm", "a100-40gb"},
    Spelling{"a10040gbsxm4", "a100-40gb"},
    Spelling{"h100sxm", "h100"},
    Spelling{"h100sxm5", "h100"},
    Spelling{"h10080gb", "h100"},
    Spelling{"h10080gbsxm", "h100"},
    Spelling{"h100sxm80gb", "h100"},
    Spelling{"h100sxm580gb", "h100"},
    Spelling{"h10080gbhbm3", "h100"},
    Spelling{"dgxh100", "h100"},
    Spelling{"hgxh100", "h100"},
    Spelling{"h200sxm", "h200"},
    Spelling{"h200141gb", "h200"},
    Spelling{"dgxh200", "h200"},
    Spelling{"hgxh200", "h200"},
    Spelling{"b200sxm", "b200"},
    Spelling{"dgxb200", "b200"},
    Spelling{"hgxb200", "b200"},
    Spelling{"dgxb300", "b300"},
    Spelling{"hgxb300", "b300"},
    Spelling{"gb200", "gb200-nvl72"},
    Spelling{"gb300", "gb300-nvl72"},
    Spelling{"v10032gb", "v100"},
    Spelling{"v100sxm2", "v100"},
    Spelling{"v100sxm232gb", "v100"},
    Spelling{"v10016gb", "p3"},
    Spelling{"v100sxm216gb", "p3"},
    Spelling{"mi300", "mi300x"},
    Spelling{"mi325", "mi325x"},
    Spelling{"4090", "rtx4090"},
    Spelling{"geforcertx4090", "rtx4090"},
    Spelling{"p4d24xlarge", "p4d"},
    Spelling{"p548xlarge", "p5"},
};

constexpr std::array kNotHeld = {
    LikeCluster{"h800", "h100", "an NVLink of 400 GB/s, both directions together"},
    LikeCluster{"a800", "a100", "an NVLink of 400 GB/s, both directions together"},
    LikeCluster{"h20", "h100", "148 TFLOP/s in bf16, 96 GB and 4000 GB/s of memory"},
    LikeCluster{"h100pcie", "h100", "756 TFLOP/s in bf16, 2000 GB/s of memory, and PCIe between the devices"},
    LikeCluster{"a100pcie", "a100", "PCIe between the devices"},
};

int lower(unsigned char c) {
  return std::tolower(c);
}

/// Returns the letters and digits without the words that repositories put around a model's name, and without the
/// vendor before a device's name.
std::string bare(std::string_view text) {
  std::string plain = letters_and_digits(text);
  for (const std::string_view prefix : {"meta", "nvidia", "amd"}) {
    if (plain.starts_with(prefix) && plain.size() > prefix.size()) plain.erase(0, prefix.size());
  }
  for (const std::string_view suffix : {"instruct", "chat", "base", "hf"}) {
    if (plain.ends_with(suffix) && plain.size() > suffix.size()) plain.erase(plain.size() - suffix.size());
  }
  return plain;
}

}  // namespace

std::vector<std::string> presets_spelled(const std::vector<std::string>& names, std::string_view text) {
  const auto is_text = [&](const std::string& name) {
    return std::ranges::equal(name, text, [](unsigned char a, unsigned char b) { return lower(a) == lower(b); });
  };
  if (const auto same = std::ranges::find_if(names, is_text); same != names.end()) return {*same};
  for (const std::string& plain : {letters_and_digits(text), bare(text)}) {
    std::vector<std::string> alike;
    if (plain.empty()) continue;
    std::ranges::copy_if(names, std::back_inserter(alike),
                         [&](const std::string& name) { return letters_and_digits(name) == plain; });
    if (!alike.empty()) return alike;
    const auto meant = std::ranges::find(names, meaning(kClusters, plain));
    if (meant != names.end()) return {*meant};
  }
  return {};
}

std::string nearest_preset(const std::vector<std::string>& names, std::string_view text) {
  const std::string plain = bare(text);
  std::string nearest;
  for (const std::string& name : names) {
    if (plain.starts_with(letters_and_digits(name)) && name.size() > nearest.size()) nearest = name;
  }
  return nearest.empty() ? nearest_name(text, names) : nearest;
}

const LikeCluster* cluster_not_held(std::string_view text) {
  const auto it = std::ranges::find(kNotHeld, bare(text), &LikeCluster::text);
  return it == kNotHeld.end() ? nullptr : &*it;
}

std::string preset_of_gpu(const std::vector<std::string>& clusters, std::string_view gpu) {
  std::vector<std::string> words{""};
  for (const char c : gpu) {
    if (c == ' ' || c == '-')
      words.emplace_back();
    else
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  const auto has = [&](const std::string& word) {
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i] == word || (i > 0 && words[i - 1] + words[i] == word)) return true;
    return false;
  };
  std::string found;
  for (const std::string& name : clusters) {
    const std::string word = name.substr(0, name.find('-'));
    if (has(word) && (found.empty() || name == word)) found = name;
  }
  return found;
}

}}  // namespace plumb::tools
