#include "tools/machine/read_topology.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace plumb { inline namespace tools {
namespace {

namespace fs = std::filesystem;

std::string line_of(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

/// Returns the number that the text begins with ("16.0 GT/s PCIe", "400 Gb/sec (4X NDR)"), or 0 if there is none.
double leading_number(const std::string& text) {
  return std::strtod(text.c_str(), nullptr);
}

double link_of(const fs::path& device) {
  return pcie_bytes_per_second(leading_number(line_of(device / "max_link_speed")) * 1e9,
                               leading_number(line_of(device / "max_link_width")));
}

struct PciDevice {
  std::vector<std::string> path;  // the host bridge, the bridges, the device
  int numa = -1;
};

PciDevice pci_device(const fs::path& link) {
  PciDevice device;
  std::error_code unreadable;
  const fs::path real = fs::canonical(link, unreadable);
  bool is_inside = false;
  for (const fs::path& part : real) {
    is_inside = is_inside || part.string().starts_with("pci");
    if (is_inside) device.path.push_back(part.string());
  }
  const std::string numa = line_of(link / "numa_node");
  if (!numa.empty()) device.numa = static_cast<int>(leading_number(numa));
  return device;
}

DevicePath path_between(const PciDevice& a, const PciDevice& b) {
  if (a.path.empty() || b.path.empty() || a.path.front() != b.path.front())
    return {.kind = a.numa >= 0 && a.numa == b.numa ? PathKind::kNode : PathKind::kSystem};
  const auto [own, other] = std::ranges::mismatch(a.path, b.path);
  if (own - a.path.begin() == 1) return {.kind = PathKind::kHostBridge};  // only the host bridge is common to both
  const auto bridges = std::max(a.path.end() - own, b.path.end() - other) - 1;
  return {.kind = bridges <= 1 ? PathKind::kOneBridge : PathKind::kBridges};
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, missing)) entries.push_back(entry.path());
  std::ranges::sort(entries);
  return entries;
}

}  // namespace

double pcie_bytes_per_second(double transfers_per_second, double lanes) {
  return transfers_per_second * lanes / 8 * (transfers_per_second <= 5e9 ? 0.8 : 128.0 / 130);
}

MachineTopology read_sys_topology(const std::string& sys) {
  MachineTopology found;
  std::vector<PciDevice> gpus, nics;
  for (const fs::path& device : entries_of(fs::path(sys) / "bus/pci/devices")) {
    const std::string kind = line_of(device / "class");
    // GPUs are NVIDIA's display controllers of the classes VGA (0x0300) and 3D (0x0302).
    if (line_of(device / "vendor") != "0x10de" || !(kind.starts_with("0x0300") || kind.starts_with("0x0302"))) continue;
    gpus.push_back(pci_device(device));
    found.gpus.push_back({.numa = gpus.back().numa, .pcie_bytes_per_second = link_of(device)});
  }
  const auto add_nic = [&](const fs::path& entry, double bits_per_second) {
    nics.push_back(pci_device(entry / "device"));
    found.nics.push_back({.name = entry.filename().string(), .bytes_per_second = bits_per_second / 8});
  };
  for (const fs::path& card : entries_of(fs::path(sys) / "class/infiniband"))
    add_nic(card, leading_number(line_of(card / "ports/1/rate")) * 1e9);
  if (found.nics.empty())  // without RDMA, the cards are the Ethernet cards that are PCI devices and run
    for (const fs::path& card : entries_of(fs::path(sys) / "class/net"))
      if (const double megabits = leading_number(line_of(card / "speed")); megabits > 0 && fs::exists(card / "device"))
        add_nic(card, megabits * 1e6);
  for (const PciDevice& gpu : gpus) {
    std::vector<DevicePath>& to_gpus = found.between_gpus.emplace_back();
    for (const PciDevice& other : gpus) to_gpus.push_back(path_between(gpu, other));
    std::vector<DevicePath>& to_nics = found.to_nics.emplace_back();
    for (const PciDevice& nic : nics) to_nics.push_back(path_between(gpu, nic));
  }
  return found;
}

}}  // namespace plumb::tools
