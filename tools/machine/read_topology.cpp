#include "tools/machine/read_topology.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace plumb {
namespace {

namespace fs = std::filesystem;

std::string line_of(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

/// The number that the text begins with; 0 if it does with none ("16.0 GT/s PCIe", "400 Gb/sec (4X NDR)").
double leading_number(const std::string& text) {
  return std::strtod(text.c_str(), nullptr);
}

/// GB/s of a lane, one direction, behind its encoding: 8b/10b up to 5 GT/s, 128b/130b from 8 GT/s on (PCI-SIG).
double pcie_bytes_per_second(const fs::path& device) {
  const double transfers = leading_number(line_of(device / "max_link_speed")) * 1e9;
  const double lanes = leading_number(line_of(device / "max_link_width"));
  return transfers * lanes / 8 * (transfers <= 5e9 ? 0.8 : 128.0 / 130);
}

struct PciDevice {
  std::vector<std::string> path;  // host bridge, bridges, the device
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
  if (own - a.path.begin() == 1) return {.kind = PathKind::kHostBridge};  // nothing but the host bridge in common
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

// NVML's functions, as https://docs.nvidia.com/deploy/nvml-api declares them.

using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total, free, used;
};
constexpr int kNvmlSuccess = 0;
constexpr unsigned kMostLinks = 18;

/// One NVLink, one direction, by its generation: 20, 25, 25, 25 and 50 GB/s (data sheets of P100, V100, A100, H100 and
/// B200: 160, 300, 600, 900 and 1800 GB/s of 4, 6, 12, 18 and 18 links, both directions).
double nvlink_bytes_per_second(unsigned version) {
  if (version == 0) return 0;
  if (version == 1) return 20e9;
  return version >= 5 ? 50e9 : 25e9;
}

class Nvml {
 public:
  explicit Nvml(const std::string& library) : handle_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  ~Nvml() {
    if (is_open_) call<int>("nvmlShutdown");
    if (handle_ != nullptr) dlclose(handle_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool is_there() const { return handle_ != nullptr; }
  bool open() { return is_open_ = call<int>("nvmlInit_v2") == kNvmlSuccess; }

  /// -1 where the library has no such function.
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    using Function = int (*)(Arguments...);
    const auto function = reinterpret_cast<Function>(dlsym(handle_, name));
    return function == nullptr ? -1 : function(arguments...);
  }
  template <class Result>
  Result call(const char* name) const {
    const auto function = reinterpret_cast<Result (*)()>(dlsym(handle_, name));
    return function == nullptr ? Result{-1} : function();
  }

 private:
  void* handle_;
  bool is_open_ = false;
};

/// NVLinks of a device, and whether one ends at another GPU instead of a switch.
struct NvLinks {
  int count = 0;
  bool to_gpus = false;
};

void describe(const Nvml& nvml, NvmlDevice device, TopologyGpu& gpu, NvLinks& links) {
  std::array<char, 128> name{};
  if (nvml.call("nvmlDeviceGetName", device, name.data(), static_cast<unsigned>(name.size())) == kNvmlSuccess)
    gpu.name = name.data();
  NvmlMemory memory{};
  if (nvml.call("nvmlDeviceGetMemoryInfo", device, &memory) == kNvmlSuccess)
    gpu.memory_bytes = static_cast<std::int64_t>(memory.total);
  unsigned version = 0;
  for (unsigned link = 0; link < kMostLinks; ++link) {
    unsigned active = 0;
    if (nvml.call("nvmlDeviceGetNvLinkState", device, link, &active) != kNvmlSuccess || active == 0) continue;
    ++links.count;
    int remote = -1;  // NVML_NVLINK_DEVICE_TYPE_GPU is 0
    if (nvml.call("nvmlDeviceGetNvLinkRemoteDeviceType", device, link, &remote) == kNvmlSuccess && remote == 0)
      links.to_gpus = true;
    nvml.call("nvmlDeviceGetNvLinkVersion", device, link, &version);
  }
  gpu.link_bytes_per_second = nvlink_bytes_per_second(version);
}

}  // namespace

MachineTopology read_sys_topology(const std::string& sys) {
  MachineTopology found;
  std::vector<PciDevice> gpus, nics;
  for (const fs::path& device : entries_of(fs::path(sys) / "bus/pci/devices")) {
    const std::string kind = line_of(device / "class");
    // Display controllers of NVIDIA: VGA (0x0300) and 3D (0x0302).
    if (line_of(device / "vendor") != "0x10de" || !(kind.starts_with("0x0300") || kind.starts_with("0x0302"))) continue;
    gpus.push_back(pci_device(device));
    found.gpus.push_back({.numa = gpus.back().numa, .pcie_bytes_per_second = pcie_bytes_per_second(device)});
  }
  const auto add_nic = [&](const fs::path& entry, double bits_per_second) {
    nics.push_back(pci_device(entry / "device"));
    found.nics.push_back({.name = entry.filename().string(), .bytes_per_second = bits_per_second / 8});
  };
  for (const fs::path& card : entries_of(fs::path(sys) / "class/infiniband"))
    add_nic(card, leading_number(line_of(card / "ports/1/rate")) * 1e9);
  if (found.nics.empty())  // no RDMA: Ethernet cards that are PCI devices and run
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

std::string add_nvml(MachineTopology& topology, const std::string& library) {
  Nvml nvml(library);
  if (!nvml.is_there()) return fmt::format("there is no {} here, which comes with NVIDIA's driver", library);
  if (!nvml.open()) return fmt::format("{} does not start: no driver, or no GPU", library);
  unsigned count = 0;
  if (nvml.call("nvmlDeviceGetCount_v2", &count) != kNvmlSuccess || count != topology.gpus.size())
    return fmt::format("NVML knows of {} GPUs and /sys of {}: some are hidden from one of them", count,
                       topology.gpus.size());
  int links = kMostLinks;
  for (unsigned index = 0; index < count; ++index) {
    NvmlDevice device = nullptr;
    if (nvml.call("nvmlDeviceGetHandleByIndex_v2", index, &device) != kNvmlSuccess)
      return fmt::format("NVML does not open GPU {}", index);
    NvLinks own;
    describe(nvml, device, topology.gpus[index], own);
    links = std::min(links, own.to_gpus ? own.count / std::max(1, static_cast<int>(count) - 1) : own.count);
  }
  // NVLinks between all pairs, where they go to a switch or to each of the others.
  if (links > 0)
    for (std::size_t a = 0; a < topology.gpus.size(); ++a)
      for (std::size_t b = 0; b < topology.gpus.size(); ++b)
        if (a != b) topology.between_gpus[a][b] = {.kind = PathKind::kNvLink, .links = links};
  return {};
}

}  // namespace plumb
