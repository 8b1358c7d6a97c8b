// A folder stands in the place of /sys, in the form in which the kernel shows PCI devices and network cards.

#include "tools/machine/read_topology.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace plumb::test {
namespace fs = std::filesystem;

namespace {

class FakeSys {
 public:
  FakeSys()
      : root_(fs::temp_directory_path() /
              ("plumb-sys-" + std::to_string(getpid()) + "-" + std::to_string(std::rand()))) {
    fs::create_directories(root_ / "bus/pci/devices");
  }
  ~FakeSys() { fs::remove_all(root_); }
  FakeSys(const FakeSys&) = delete;
  FakeSys& operator=(const FakeSys&) = delete;

  std::string path() const { return root_.string(); }

  void write(const fs::path& file, const std::string& line) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << line << '\n';
  }

  /// Adds a PCI device below `bridges` ("pci0000:00/0000:00:01.0").
  void device(const std::string& bridges, const std::string& address, const std::string& vendor,
              const std::string& kind, int numa) const {
    const fs::path folder = fs::path("devices") / bridges / address;
    write(folder / "vendor", vendor);
    write(folder / "class", kind);
    write(folder / "numa_node", std::to_string(numa));
    write(folder / "max_link_speed", "32.0 GT/s PCIe");
    write(folder / "max_link_width", "16");
    fs::create_directory_symlink(root_ / folder, root_ / "bus/pci/devices" / address);
  }

  void infiniband(const std::string& name, const std::string& address, const std::string& rate) const {
    write(fs::path("class/infiniband") / name / "ports/1/rate", rate);
    fs::create_directory_symlink(root_ / "bus/pci/devices" / address, root_ / "class/infiniband" / name / "device");
  }

 private:
  fs::path root_;
};

constexpr const char* kGpu = "0x030200";
constexpr const char* kCard = "0x020700";

}  // namespace

TEST_CASE("GPUs, cards and what lies between them come from the PCI tree") {
  const FakeSys sys;
  const std::string under_switch = "pci0000:15/0000:15:01.0/0000:16:00.0";
  sys.device(under_switch + "/0000:17:00.0", "0000:18:00.0", "0x10de", kGpu, 0);
  sys.device(under_switch + "/0000:17:01.0", "0000:19:00.0", "0x15b3", kCard, 0);
  sys.device("pci0000:15/0000:15:02.0", "0000:1a:00.0", "0x10de", kGpu, 0);
  sys.device("pci0000:80/0000:80:01.0", "0000:81:00.0", "0x10de", kGpu, 0);
  sys.device("pci0000:c0/0000:c0:01.0", "0000:c1:00.0", "0x10de", "0x030000", 1);
  sys.device("pci0000:c0/0000:c0:02.0", "0000:c2:00.0", "0x1a03", "0x030000", 1);  // the board's own display
  sys.infiniband("mlx5_0", "0000:19:00.0", "400 Gb/sec (4X NDR)");
  const MachineTopology found = read_sys_topology(sys.path());
  REQUIRE(found.gpus.size() == 4);
  REQUIRE(found.nics.size() == 1);
  CHECK(found.nics[0].bytes_per_second == 50e9);
  CHECK(found.gpus[0].pcie_bytes_per_second == doctest::Approx(63.0e9).epsilon(0.001));
  CHECK(found.to_nics[0][0].kind == PathKind::kOneBridge);
  CHECK(found.to_nics[1][0].kind == PathKind::kHostBridge);
  CHECK(found.between_gpus[0][1].kind == PathKind::kHostBridge);
  CHECK(found.between_gpus[0][2].kind == PathKind::kNode);
  CHECK(found.between_gpus[0][3].kind == PathKind::kSystem);
  CHECK(found.gpus[3].numa == 1);
}

TEST_CASE("a machine without GPUs and cards has none") {
  const FakeSys sys;
  CHECK(read_sys_topology(sys.path()).gpus.empty());
  CHECK(read_sys_topology(sys.path() + "/nowhere").gpus.empty());
}

}  // namespace plumb::test
