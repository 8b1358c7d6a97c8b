#include "tools/machine/read_nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "tools/machine/read_topology.h"

namespace plumb { inline namespace tools {
namespace {

// These declarations of NVML's types and constants follow https://docs.nvidia.com/deploy/nvml-api.

using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlPci {
  std::array<char, 16> legacy_bus_id;
  unsigned domain, bus, device, device_id, subsystem_id;
  std::array<char, 32> bus_id;
};
constexpr int kNvmlSuccess = 0;
constexpr unsigned kMostLinks = 18;
constexpr int kRemoteGpu = 0;         // NVML_NVLINK_DEVICE_TYPE_GPU
constexpr unsigned kNvLinkPeers = 2;  // NVML_P2P_CAPS_INDEX_NVLINK
constexpr int kPeersOk = 0;           // NVML_P2P_STATUS_OK
constexpr int kPeersUnknown = 6;      // NVML_P2P_STATUS_UNKNOWN

/// Returns the bandwidth of one NVLink in one direction by its generation: 20, 25, 25, 25 and 50 GB/s (data sheets of
/// P100, V100, A100, H100 and B200: 160, 300, 600, 900 and 1800 GB/s of 4, 6, 12, 18 and 18 links, both directions).
double nvlink_bytes_per_second(unsigned version) {
  if (version == 0) return 0;
  if (version == 1) return 20e9;
  return version >= 5 ? 50e9 : 25e9;
}

/// Returns the transfers of a lane by the generation of PCIe: 2.5, 5, 8, 16, 32 and 64 GT/s (PCI-SIG); 0 if it is not
/// known.
double pcie_transfers_per_second(unsigned generation) {
  constexpr std::array kGigatransfers = {0.0, 2.5, 5.0, 8.0, 16.0, 32.0, 64.0};
  return generation < kGigatransfers.size() ? kGigatransfers[generation] * 1e9 : 0;
}

/// Returns the kind of path of an nvmlGpuTopologyLevel_t: the same board, one bridge, bridges, a host bridge, a NUMA
/// node, the system.
PathKind path_of_level(int level) {
  if (level <= 10) return PathKind::kOneBridge;
  if (level <= 20) return PathKind::kBridges;
  if (level <= 30) return PathKind::kHostBridge;
  return level <= 40 ? PathKind::kNode : PathKind::kSystem;
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

  /// Calls the function of that name; returns -1 if the library has none.
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

/// A GPU of NVML, and the ends of its NVLinks.
struct NvmlGpu {
  NvmlDevice device = nullptr;
  TopologyGpu gpu;
  std::string bus_id;
  bool is_divided = false;              ///< MIG is on
  int links = 0;                        ///< active NVLinks
  int others = 0;                       ///< NVLinks that end at no GPU: at a switch, or at an unknown end
  std::vector<std::string> peers = {};  ///< [link to a GPU] that GPU's bus id; empty: not known
};

std::string bus_id_of(const NvmlPci& pci) {
  const auto end = std::ranges::find(pci.bus_id, '\0');
  return {pci.bus_id.begin(), end};
}

void describe_links(const Nvml& nvml, NvmlGpu& own) {
  unsigned version = 0;
  for (unsigned link = 0; link < kMostLinks; ++link) {
    unsigned active = 0;
    if (nvml.call("nvmlDeviceGetNvLinkState", own.device, link, &active) != kNvmlSuccess || active == 0) continue;
    ++own.links;
    int remote = -1;
    NvmlPci pci{};
    if (nvml.call("nvmlDeviceGetNvLinkRemoteDeviceType", own.device, link, &remote) != kNvmlSuccess ||
        remote != kRemoteGpu)
      ++own.others;
    else if (nvml.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", own.device, link, &pci) == kNvmlSuccess)
      own.peers.push_back(bus_id_of(pci));
    else
      own.peers.emplace_back();
    nvml.call("nvmlDeviceGetNvLinkVersion", own.device, link, &version);
  }
  own.gpu.link_bytes_per_second = nvlink_bytes_per_second(version);
}

NvmlGpu describe(const Nvml& nvml, NvmlDevice device) {
  NvmlGpu own{.device = device, .gpu = {}, .bus_id = {}};
  std::array<char, 128> name{};
  if (nvml.call("nvmlDeviceGetName", device, name.data(), static_cast<unsigned>(name.size())) == kNvmlSuccess)
    own.gpu.name = name.data();
  NvmlMemory memory{};
  if (nvml.call("nvmlDeviceGetMemoryInfo", device, &memory) == kNvmlSuccess)
    own.gpu.memory_bytes = static_cast<std::int64_t>(memory.total);
  NvmlPci pci{};
  if (nvml.call("nvmlDeviceGetPciInfo_v3", device, &pci) == kNvmlSuccess) own.bus_id = bus_id_of(pci);
  unsigned generation = 0, lanes = 0, mode = 0, pending = 0;
  if (nvml.call("nvmlDeviceGetMaxPcieLinkGeneration", device, &generation) == kNvmlSuccess &&
      nvml.call("nvmlDeviceGetMaxPcieLinkWidth", device, &lanes) == kNvmlSuccess)
    own.gpu.pcie_bytes_per_second = pcie_bytes_per_second(pcie_transfers_per_second(generation), lanes);
  unsigned long nodes = 0;  // a bit for each NUMA node
  constexpr unsigned kOfNodes = 0;
  if (nvml.call("nvmlDeviceGetMemoryAffinity", device, 1U, &nodes, kOfNodes) == kNvmlSuccess && nodes != 0)
    own.gpu.numa = __builtin_ctzl(nodes);
  own.is_divided = nvml.call("nvmlDeviceGetMigMode", device, &mode, &pending) == kNvmlSuccess && mode != 0;
  describe_links(nvml, own);
  return own;
}

/// Returns the number of NVLinks between two GPUs: those that end at the other GPU, and those through a switch. Links
/// of which NVML does not say the GPU are divided evenly among the other GPUs.
int links_between(const Nvml& nvml, const NvmlGpu& one, const NvmlGpu& other, std::size_t gpus) {
  int status = kPeersUnknown;
  if (nvml.call("nvmlDeviceGetP2PStatus", one.device, other.device, kNvLinkPeers, &status) == kNvmlSuccess &&
      status != kPeersOk && status != kPeersUnknown)
    return 0;
  const auto unknown = static_cast<int>(std::ranges::count(one.peers, std::string()));
  const auto direct = static_cast<int>(
      std::ranges::count_if(one.peers, [&](const std::string& peer) { return !peer.empty() && peer == other.bus_id; }));
  return direct + unknown / std::max(1, static_cast<int>(gpus) - 1) + std::min(one.others, other.others);
}

struct NvmlGpus {
  std::vector<NvmlGpu> gpus;
  std::string why;
};

NvmlGpus gpus_of(Nvml& nvml, const std::string& library) {
  NvmlGpus all;
  const auto failed = [&](std::string why) {
    all.why = std::move(why);
    return all;
  };
  if (!nvml.is_there()) return failed(fmt::format("there is no {} here, which comes with NVIDIA's driver", library));
  if (!nvml.open()) return failed(fmt::format("{} does not start: no driver, or no GPU", library));
  unsigned count = 0;
  if (nvml.call("nvmlDeviceGetCount_v2", &count) != kNvmlSuccess)
    return failed(fmt::format("{} does not say how many GPUs there are", library));
  for (unsigned index = 0; index < count; ++index) {
    NvmlDevice device = nullptr;
    if (nvml.call("nvmlDeviceGetHandleByIndex_v2", index, &device) != kNvmlSuccess)
      return failed(fmt::format("NVML does not open GPU {}", index));
    all.gpus.push_back(describe(nvml, device));
  }
  return all;
}

/// Sets the NVLinks between GPUs. Two GPUs without a link between them keep the path that was found before.
void add_nvlinks(const Nvml& nvml, const std::vector<NvmlGpu>& gpus, MachineTopology& topology) {
  for (std::size_t a = 0; a < gpus.size(); ++a)
    for (std::size_t b = 0; b < gpus.size(); ++b) {
      if (a == b) continue;
      const int links = std::min(links_between(nvml, gpus[a], gpus[b], gpus.size()),
                                 links_between(nvml, gpus[b], gpus[a], gpus.size()));
      if (links > 0) topology.between_gpus[a][b] = {.kind = PathKind::kNvLink, .links = links};
    }
}

}  // namespace

std::string add_nvml(MachineTopology& topology, const std::string& library) {
  Nvml nvml(library);
  const NvmlGpus known = gpus_of(nvml, library);
  if (!known.why.empty()) return known.why;
  if (known.gpus.size() != topology.gpus.size())
    return fmt::format("NVML knows of {} GPUs and /sys of {}: some are hidden from one of them", known.gpus.size(),
                       topology.gpus.size());
  for (std::size_t index = 0; index < known.gpus.size(); ++index) {
    TopologyGpu& gpu = topology.gpus[index];
    const TopologyGpu& own = known.gpus[index].gpu;
    gpu.name = own.name;
    gpu.memory_bytes = own.memory_bytes;
    gpu.link_bytes_per_second = own.link_bytes_per_second;
  }
  add_nvlinks(nvml, known.gpus, topology);
  return {};
}

NvmlTopology read_nvml_topology(const std::string& library) {
  Nvml nvml(library);
  const NvmlGpus known = gpus_of(nvml, library);
  if (!known.why.empty()) return {.found = {}, .why = known.why, .notes = {}};
  if (known.gpus.empty()) return {.found = {}, .why = "NVML knows of no GPU", .notes = {}};
  NvmlTopology result;
  for (std::size_t a = 0; a < known.gpus.size(); ++a) {
    const NvmlGpu& own = known.gpus[a];
    result.found.gpus.push_back(own.gpu);
    result.found.to_nics.emplace_back();
    std::vector<DevicePath>& paths = result.found.between_gpus.emplace_back();
    for (const NvmlGpu& other : known.gpus) {
      int level = 50;  // NVML_TOPOLOGY_SYSTEM, the furthest, is taken where NVML does not say
      if (&other != &own) nvml.call("nvmlDeviceGetTopologyCommonAncestor", own.device, other.device, &level);
      paths.push_back({.kind = path_of_level(level)});
    }
    if (own.is_divided)
      result.notes.push_back(fmt::format(
          "GPU {} is divided (MIG): what is written is of the whole GPU, and its parts have no links of their own", a));
  }
  add_nvlinks(nvml, known.gpus, result.found);
  return result;
}

}}  // namespace plumb::tools
