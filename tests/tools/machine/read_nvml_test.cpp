#include "tools/machine/read_nvml.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include <string>

namespace plumb::test {
namespace {

NvmlTopology read_fake(const char* gpus) {
  setenv("PLUMB_FAKE_NVML_GPUS", gpus, 1);
  return read_nvml_topology(PLUMB_FAKE_NVML);
}

MachineTopology unknown_gpus(std::size_t count) {
  MachineTopology topology;
  topology.gpus.resize(count);
  topology.between_gpus.assign(count, std::vector<DevicePath>(count));
  topology.to_nics.resize(count);
  return topology;
}

}  // namespace

TEST_CASE("NVML alone tells of GPUs, PCIe, and the NVLinks of each pair") {
  const NvmlTopology read = read_fake("mesh 4");
  CHECK(read.why == "");
  CHECK(read.notes.empty());
  REQUIRE(read.found.gpus.size() == 4);
  CHECK(read.found.gpus[0].name == "NVIDIA H100 80GB HBM3");
  CHECK(read.found.gpus[0].memory_bytes == std::int64_t{80} << 30);
  CHECK(read.found.gpus[0].pcie_bytes_per_second == doctest::Approx(63.0e9).epsilon(0.001));
  CHECK(read.found.gpus[0].link_bytes_per_second == 25e9);
  CHECK(read.found.gpus[3].numa == 1);
  CHECK(read.found.between_gpus[0][1] == DevicePath{PathKind::kNvLink, 2});
  CHECK(read.found.between_gpus[1][0] == DevicePath{PathKind::kNvLink, 2});
  CHECK(read.found.between_gpus[0][2] == DevicePath{PathKind::kNvLink, 1});
  CHECK(read.found.between_gpus[3][2] == DevicePath{PathKind::kNvLink, 1});
  CHECK(read.found.to_nics.size() == 4);
}

TEST_CASE("all links that go to switches join each pair") {
  const NvmlTopology read = read_fake("switch 8");
  REQUIRE(read.found.gpus.size() == 8);
  for (std::size_t other = 1; other < 8; ++other)
    CHECK(read.found.between_gpus[0][other] == DevicePath{PathKind::kNvLink, 18});
}

TEST_CASE("without NVLinks it is what PCIe has between them; a divided GPU is told") {
  const NvmlTopology read = read_fake("pcie 6 mig");
  REQUIRE(read.found.gpus.size() == 6);
  CHECK(read.found.between_gpus[0][1].kind == PathKind::kOneBridge);
  CHECK(read.found.between_gpus[0][2].kind == PathKind::kNode);
  CHECK(read.found.between_gpus[0][4].kind == PathKind::kSystem);
  CHECK(read.found.gpus[0].link_bytes_per_second == 0);
  REQUIRE(read.notes.size() == 1);
  CHECK(read.notes[0].starts_with("GPU 1 is divided (MIG)"));
}

TEST_CASE("no library, no driver and no GPU are told") {
  CHECK(read_nvml_topology("libno-such-nvml.so").why.starts_with("there is no libno-such-nvml.so here"));
  CHECK(read_fake("").why.ends_with("does not start: no driver, or no GPU"));
  CHECK(read_fake("pcie 0").why == "NVML knows of no GPU");
}

TEST_CASE("GPUs of /sys get names, memory and links; one that NVML does not have is told, and nothing is changed") {
  setenv("PLUMB_FAKE_NVML_GPUS", "mesh 4", 1);
  MachineTopology four = unknown_gpus(4), five = unknown_gpus(5);
  CHECK(add_nvml(four, PLUMB_FAKE_NVML) == "");
  CHECK(four.gpus[2].name == "NVIDIA H100 80GB HBM3");
  CHECK(four.between_gpus[2][3] == DevicePath{PathKind::kNvLink, 1});
  CHECK(add_nvml(five, PLUMB_FAKE_NVML) == "NVML knows of 4 GPUs and /sys of 5: some are hidden from one of them");
  CHECK(five.gpus[2].name == "");
  CHECK(add_nvml(five, "libno-such-nvml.so").starts_with("there is no libno-such-nvml.so here"));
}

}  // namespace plumb::test
