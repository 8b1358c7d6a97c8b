// These cases check the order of the sources, with a folder for /sys, a library for NVML, and a program for nvidia-smi
// on PATH.

#include "tools/machine/find_topology.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "schedules/error.h"

namespace plumb::test {
namespace fs = std::filesystem;

namespace {

/// A machine whose /sys is empty, and whose PATH is a folder of its own.
class Machine {
 public:
  Machine()
      : root_(fs::temp_directory_path() /
              ("plumb-machine-" + std::to_string(getpid()) + "-" + std::to_string(std::rand()))),
        path_(std::getenv("PATH")) {
    fs::create_directories(root_ / "bin");
    setenv("PATH", (root_ / "bin").c_str(), 1);
  }
  ~Machine() {
    setenv("PATH", path_.c_str(), 1);
    fs::remove_all(root_);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  std::string sys() const { return (root_ / "sys").string(); }

  void nvidia_smi(const std::string& script) const {
    const fs::path file = root_ / "bin/nvidia-smi";
    std::ofstream(file) << "#!/bin/sh\n" << script;
    fs::permissions(file, fs::perms::owner_all);
  }

  void gpu(const std::string& address) const {
    const fs::path folder = root_ / "sys/bus/pci/devices" / address;
    fs::create_directories(folder);
    std::ofstream(folder / "vendor") << "0x10de\n";
    std::ofstream(folder / "class") << "0x030200\n";
  }

  void ethernet(const std::string& name) const {
    const fs::path folder = root_ / "sys/class/net" / name;
    fs::create_directories(folder / "device");
    std::ofstream(folder / "speed") << "100000\n";
  }

 private:
  fs::path root_;
  std::string path_;
};

constexpr const char* kNoNvml = "libno-such-nvml.so";
constexpr const char* kTable =
    "[ \"$*\" = 'topo -m' ] || exit 1\n"
    "echo '\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity'\n"
    "echo 'GPU0\t X \tNV4\t0-31\t0'\n"
    "echo 'GPU1\tNV4\t X \t0-31\t0'\n";

FoundTopology with_gpus(const Machine& machine, const char* gpus) {
  setenv("PLUMB_FAKE_NVML_GPUS", gpus, 1);
  return find_topology(machine.sys(), PLUMB_FAKE_NVML);
}

std::string refused(const Machine& machine, const std::string& nvml) {
  try {
    find_topology(machine.sys(), nvml);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("/sys comes first, with NVML beside it where the two agree") {
  const Machine machine;
  machine.gpu("0000:10:00.0");
  machine.gpu("0000:11:00.0");
  const FoundTopology both = with_gpus(machine, "mesh 2");
  CHECK(both.source == "/sys and NVML");
  CHECK(both.notes.empty());
  CHECK(both.topology.between_gpus[0][1] == DevicePath{PathKind::kNvLink, 2});
  const FoundTopology apart = with_gpus(machine, "mesh 1");
  CHECK(apart.source == "/sys");
  CHECK(apart.topology.gpus.size() == 2);
  REQUIRE(apart.notes.size() == 1);
  CHECK(apart.notes[0] ==
        "NVML knows of 1 GPUs and /sys of 2: some are hidden from one of them: names and NVLinks are not known");
}

TEST_CASE("where /sys hides the GPUs NVML alone is asked, and the cards of /sys stay") {
  const Machine machine;
  machine.ethernet("eth0");
  machine.nvidia_smi("exit 1\n");
  const FoundTopology found = with_gpus(machine, "switch 8");
  CHECK(found.source == "NVML");
  REQUIRE(found.topology.gpus.size() == 8);
  CHECK(found.topology.between_gpus[0][7] == DevicePath{PathKind::kNvLink, 18});
  REQUIRE(found.topology.nics.size() == 1);
  CHECK(found.topology.nics[0].bytes_per_second == 12.5e9);
  CHECK(found.topology.to_nics[7][0].kind == PathKind::kSystem);
  REQUIRE(found.notes.size() == 1);
  CHECK(found.notes[0].ends_with("shows no GPU of NVIDIA here: all is NVML's, which knows of no network cards"));
  CHECK(with_gpus(machine, "pcie 2 mig").notes.size() == 2);
}

TEST_CASE("without NVML the table of nvidia-smi is read") {
  const Machine machine;
  machine.nvidia_smi(kTable);
  const FoundTopology found = find_topology(machine.sys(), kNoNvml);
  CHECK(found.source == "nvidia-smi topo -m");
  REQUIRE(found.topology.gpus.size() == 2);
  CHECK(found.topology.between_gpus[0][1] == DevicePath{PathKind::kNvLink, 4});
  REQUIRE(found.notes.size() == 1);
  CHECK(found.notes[0].find("there is no libno-such-nvml.so here") != std::string::npos);
}

TEST_CASE("where nobody knows a GPU it is said what each of them answered, and the remedy") {
  const Machine machine;
  std::string text = refused(machine, kNoNvml);
  CHECK(text.find("shows no GPU of NVIDIA here, there is no libno-such-nvml.so here") != std::string::npos);
  CHECK(text.find("there is no nvidia-smi here: run this on the machine that has them, or give --from") !=
        std::string::npos);
  machine.nvidia_smi("exit 9\n");
  CHECK(refused(machine, kNoNvml).find("nvidia-smi ended with status 9") != std::string::npos);
  machine.nvidia_smi("echo 'No devices were found'\n");
  setenv("PLUMB_FAKE_NVML_GPUS", "", 1);
  text = refused(machine, PLUMB_FAKE_NVML);
  CHECK(text.find("does not start: no driver, or no GPU") != std::string::npos);
  CHECK(text.find("nvidia-smi topo -m:1: there is no table with a column GPU0") != std::string::npos);
}

}  // namespace plumb::test
