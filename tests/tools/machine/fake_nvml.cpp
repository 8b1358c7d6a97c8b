// This library takes the place of libnvidia-ml.so.1 in tests. An environment variable, read at each nvmlInit, gives its
// GPUs:
//
//   PLUMB_FAKE_NVML_GPUS="mesh 4"       4 GPUs with NVLinks from each to each, the first pair with two
//   PLUMB_FAKE_NVML_GPUS="switch 8"     8 GPUs with 18 links each, all to switches
//   PLUMB_FAKE_NVML_GPUS="pcie 2 mig"   2 GPUs without NVLinks; the second one is divided
//   PLUMB_FAKE_NVML_GPUS=""             no driver
//
// GPU i is handle i + 1, at 0000:1i:00.0, on NUMA node i / 2.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

namespace {

struct Fake {
  std::string kind;
  unsigned gpus = 0;
  bool is_divided = false;
};

Fake& fake() {
  static Fake made;
  return made;
}

struct Pci {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
};

unsigned number(const void* device) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device)) - 1;
}

/// Returns the GPU at the end of a link. Link k goes to the k-th of the other GPUs; the first pair has one more link.
unsigned peer_of(unsigned gpu, unsigned link) {
  if (link == fake().gpus - 1) return 1 - gpu;
  return link < gpu ? link : link + 1;
}
unsigned links_of(unsigned gpu) {
  if (fake().kind == "switch") return 18;
  return fake().kind == "mesh" ? fake().gpus - 1 + (gpu < 2 ? 1 : 0) : 0;
}

void write_bus_id(Pci* pci, unsigned gpu) {
  std::memset(pci, 0, sizeof *pci);
  std::snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:1%u:00.0", gpu);
}

constexpr int kNotSupported = 3, kNotFound = 6;

}  // namespace

extern "C" {

int nvmlInit_v2() {
  const char* text = std::getenv("PLUMB_FAKE_NVML_GPUS");
  fake() = {};
  std::string more;
  if (text != nullptr) std::istringstream(text) >> fake().kind >> fake().gpus >> more;
  fake().is_divided = more == "mig";
  return fake().kind.empty() ? 9 : 0;  // NVML_ERROR_DRIVER_NOT_LOADED
}
int nvmlShutdown() {
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = fake().gpus;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= fake().gpus) return kNotFound;
  *device = reinterpret_cast<void*>(static_cast<std::uintptr_t>(index) + 1);
  return 0;
}
int nvmlDeviceGetName(void*, char* name, unsigned length) {
  std::snprintf(name, length, "NVIDIA H100 80GB HBM3");
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* memory) {
  memory[0] = 80ULL << 30;
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void* device, Pci* pci) {
  write_bus_id(pci, number(device));
  return 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* generation) {
  *generation = 5;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* lanes) {
  *lanes = 16;
  return 0;
}
int nvmlDeviceGetMemoryAffinity(void* device, unsigned, unsigned long* nodes, unsigned) {
  *nodes = 1UL << (number(device) / 2);
  return 0;
}
int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  *current = *pending = fake().is_divided && number(device) == 1 ? 1 : 0;
  return 0;
}
int nvmlDeviceGetTopologyCommonAncestor(void* one, void* other, int* level) {
  *level = number(one) / 2 == number(other) / 2 ? 10 : number(one) / 4 == number(other) / 4 ? 40 : 50;
  return 0;
}
int nvmlDeviceGetP2PStatus(void*, void*, unsigned, int* status) {
  *status = fake().kind == "pcie" ? 5 : 0;
  return 0;
}
int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* active) {
  if (fake().kind == "pcie") return kNotSupported;
  *active = link < links_of(number(device)) ? 1 : 0;
  return 0;
}
int nvmlDeviceGetNvLinkVersion(void*, unsigned, unsigned* version) {
  *version = 4;
  return 0;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int* type) {
  *type = fake().kind == "switch" ? 2 : 0;
  return 0;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, Pci* pci) {
  write_bus_id(pci, peer_of(number(device), link));
  return 0;
}

}  // extern "C"
