#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "planner/calibrate/machine_topology.h"
#include "planner/logs/text_lines.h"
#include "schedules/error.h"
#include "schedules/forms/whole_number.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns the text without the escape sequences that underline a terminal's head line.
std::string without_colours(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      plain += text[i];
      continue;
    }
    while (i + 1 < text.size() && text[i] != 'm') ++i;
  }
  return plain;
}

std::optional<int> number_of(std::string_view cell, std::string_view prefix) {
  if (!cell.starts_with(prefix)) return std::nullopt;
  return whole_number<int>(cell.substr(prefix.size()));
}

std::optional<DevicePath> path_of(std::string_view cell) {
  static const std::map<std::string_view, PathKind> kKinds = {{"PIX", PathKind::kOneBridge},
                                                              {"PXB", PathKind::kBridges},
                                                              {"PHB", PathKind::kHostBridge},
                                                              {"NODE", PathKind::kNode},
                                                              {"SYS", PathKind::kSystem}};
  if (const auto kind = kKinds.find(cell); kind != kKinds.end()) return DevicePath{.kind = kind->second};
  if (const std::optional<int> links = number_of(cell, "NV"); links && *links > 0)
    return DevicePath{.kind = PathKind::kNvLink, .links = *links};
  return std::nullopt;
}

/// A column or row: a GPU or a NIC, and its number.
struct Label {
  bool is_gpu = false;
  int number = 0;
};

std::optional<Label> label_of(std::string_view word) {
  if (const std::optional<int> gpu = number_of(word, "GPU")) return Label{true, *gpu};
  if (const std::optional<int> nic = number_of(word, "NIC")) return Label{false, *nic};
  if (word.starts_with("mlx")) return Label{false, -1};  // older drivers name the card itself
  return std::nullopt;
}

class MatrixReader {
 public:
  MatrixReader(std::string_view text, const std::string& file) : plain_(without_colours(text)), file_(file) {}

  MachineTopology read() {
    const std::vector<std::string_view> lines = lines_of(plain_);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      line_ = i + 1;
      const std::vector<std::string_view> words = words_of(lines[i]);
      if (columns_.empty()) {
        read_head(words);
      } else if (!words.empty() && words.front().starts_with("GPU") && label_of(words.front())) {
        read_gpu(words);
      } else if (words.size() == 2 && words.front().starts_with("NIC") && words.front().ends_with(':')) {
        name_nic(words);
      }
    }
    line_ = lines.size();
    check();
    return std::move(found_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw SpecError(fmt::format("{}:{}: {}", file_, line_, why)); }

  void read_head(const std::vector<std::string_view>& words) {
    if (words.empty() || words.front() != "GPU0") return;
    for (const std::string_view word : words) {
      const std::optional<Label> label = label_of(word);
      if (!label) break;  // CPU Affinity, NUMA Affinity
      columns_.push_back(*label);
      if (!label->is_gpu) found_.nics.push_back({.name = std::string(word)});
    }
  }

  void read_gpu(const std::vector<std::string_view>& words) {
    if (words.size() <= columns_.size())
      fail(fmt::format("{} has {} cells and the head {} columns: give the whole table that `nvidia-smi topo -m` prints",
                       words.front(), words.size() - 1, columns_.size()));
    std::vector<DevicePath> gpus, nics;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string_view cell = words[i + 1];
      std::optional<DevicePath> path = path_of(cell);
      if (cell == "X") path = DevicePath{};
      if (!path) fail(fmt::format("{} is none of X, NV#, PIX, PXB, PHB, NODE and SYS", cell));
      (columns_[i].is_gpu ? gpus : nics).push_back(*path);
    }
    found_.between_gpus.push_back(std::move(gpus));
    found_.to_nics.push_back(std::move(nics));
    TopologyGpu gpu;
    if (words.size() > columns_.size() + 2)  // behind the CPUs
      gpu.numa = whole_number<int>(words[columns_.size() + 2]).value_or(-1);
    found_.gpus.push_back(gpu);
  }

  void name_nic(const std::vector<std::string_view>& words) {
    const std::optional<int> nic = number_of(words[0].substr(0, words[0].size() - 1), "NIC");
    if (nic && *nic >= 0 && static_cast<std::size_t>(*nic) < found_.nics.size())
      found_.nics[static_cast<std::size_t>(*nic)].name = std::string(words[1]);
  }

  void check() const {
    if (columns_.empty()) fail("there is no table with a column GPU0: give what `nvidia-smi topo -m` prints");
    const auto gpus = static_cast<std::size_t>(std::ranges::count(columns_, true, &Label::is_gpu));
    if (found_.gpus.size() != gpus)
      fail(fmt::format("the head names {} GPUs and {} have a row", gpus, found_.gpus.size()));
    for (std::size_t a = 0; a < gpus; ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (found_.between_gpus[a][b] != found_.between_gpus[b][a])
          fail(fmt::format("GPU{} and GPU{} see different things in each other", b, a));
  }

  const std::string plain_;
  const std::string& file_;
  std::size_t line_ = 0;
  std::vector<Label> columns_;
  MachineTopology found_;
};

}  // namespace

MachineTopology parse_topology_matrix(std::string_view text, const std::string& file) {
  return MatrixReader(text, file).read();
}

}}  // namespace plumb::planner
