#include "planner/calibrate/machine_topology.h"

#include <doctest/doctest.h>

#include <string>

#include <nlohmann/json.hpp>

#include "schedules/error.h"

namespace plumb::test {
namespace {

// This table is written by hand in the form that `nvidia-smi topo -m` documents.
constexpr const char* kDgx =
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tNIC2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tNV18\tNV18\tPIX\tNODE\tSYS\t0-55,112-167\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tNV18\tNV18\tNODE\tPIX\tSYS\t0-55,112-167\t0\t\tN/A\n"
    "GPU2\tNV18\tNV18\t X \tNV18\tSYS\tSYS\tPHB\t56-111\t1\t\tN/A\n"
    "GPU3\tNV18\tNV18\tNV18\t X \tSYS\tSYS\tNODE\t56-111\t1\t\tN/A\n"
    "NIC0\tPIX\tNODE\tSYS\tSYS\t X \tNODE\tSYS\t\t\t\t\n"
    "NIC1\tNODE\tPIX\tSYS\tSYS\tNODE\t X \tSYS\t\t\t\t\n"
    "NIC2\tSYS\tSYS\tPHB\tNODE\tSYS\tSYS\t X \t\t\t\t\n"
    "\n"
    "Legend:\n"
    "\n"
    "  X    = Self\n"
    "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n"
    "  NV#  = Connection traversing a bonded set of # NVLinks\n"
    "\n"
    "NIC Legend:\n"
    "\n"
    "  NIC0: mlx5_0\n"
    "  NIC1: mlx5_1\n"
    "  NIC2: mlx5_bond_0\n";

std::string pair_of(const std::string& path) {
  return "        GPU0    GPU1    CPU Affinity    NUMA Affinity\nGPU0     X      " + path + "     0-31    0\nGPU1    " +
         path + "      X     0-31    0\n";
}

ClusterSpec base(NodeHub hub = NodeHub::kNvSwitch) {
  ClusterSpec cluster{.name = "base", .note = "", .devices = 8, .device = {.name = "GPU"}, .devices_per_node = 8};
  cluster.device.peak_flops_per_second[Precision::kBf16] = 989e12;
  cluster.device.memory_bytes = std::int64_t{80} << 30;
  cluster.device.memory_bytes_per_second = 3.35e12;
  cluster.node_link = LinkSpec{.bytes_per_second = 450e9, .efficiency = 0.8, .latency = Seconds{3e-6}};
  cluster.network = LinkSpec{.bytes_per_second = 50e9, .efficiency = 0.9, .latency = Seconds{14e-6}};
  cluster.wiring.hub = hub;
  return cluster;
}

std::string refused_matrix(const std::string& text) {
  try {
    parse_topology_matrix(text, "topo.txt");
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the table of nvidia-smi is read with its NICs, colours and legend") {
  const MachineTopology found = parse_topology_matrix(kDgx, "topo.txt");
  REQUIRE(found.gpus.size() == 4);
  REQUIRE(found.nics.size() == 3);
  CHECK(found.nics[2].name == "mlx5_bond_0");
  CHECK(found.between_gpus[0][3] == DevicePath{PathKind::kNvLink, 18});
  CHECK(found.to_nics[0][0].kind == PathKind::kOneBridge);
  CHECK(found.to_nics[2][2].kind == PathKind::kHostBridge);
  CHECK(found.to_nics[3][0].kind == PathKind::kSystem);
  CHECK(found.gpus[3].numa == 1);
}

TEST_CASE("a topology becomes one node of the base's cluster, which reads back") {
  const MachineTopology found = parse_topology_matrix(kDgx, "topo.txt");
  const ClusterSpec cluster = cluster_of_topology(found, base(), "topo.txt");
  CHECK(cluster.devices == 4);
  CHECK(cluster.devices_per_node == 4);
  CHECK(cluster.wiring.hub == NodeHub::kNvSwitch);  // 3 x 18 links are more than a GPU has
  CHECK(cluster.node_link->bytes_per_second == 450e9);
  CHECK(cluster.wiring.nics_per_node == 2);  // two NICs share a PCIe switch with a GPU
  CHECK(cluster.sources.at("node.devices") == "topo.txt");
  const ClusterSpec again = parse_cluster(to_json(cluster).dump(), "again.json");
  CHECK(again.devices_per_node == 4);
  CHECK(again.wiring == cluster.wiring);
}

TEST_CASE("links of each pair that a GPU has enough of are a mesh, none at all is PCIe") {
  MachineTopology mesh = parse_topology_matrix(kDgx, "topo.txt");
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = 0; b < 4; ++b)
      if (a != b) mesh.between_gpus[a][b].links = 4;
  for (TopologyGpu& gpu : mesh.gpus) gpu.link_bytes_per_second = 25e9;
  const ClusterSpec meshed = cluster_of_topology(mesh, base(), "topo.txt");
  CHECK(meshed.wiring.hub == NodeHub::kMesh);
  CHECK(meshed.node_link->bytes_per_second == 300e9);

  MachineTopology pcie = parse_topology_matrix(pair_of("PHB"), "topo.txt");
  CHECK_THROWS_WITH_AS(
      cluster_of_topology(pcie, base(), "topo.txt"),
      "topo.txt: PCIe joins the GPUs and nothing says how fast it is: read the topology on the machine "
      "itself, or give a --base whose node has the hub \"pcie\"",
      SpecError);
  CHECK(cluster_of_topology(pcie, base(NodeHub::kPcie), "topo.txt").node_link->bytes_per_second == 450e9);
  for (TopologyGpu& gpu : pcie.gpus) gpu.pcie_bytes_per_second = 31.5e9;
  const ClusterSpec joined = cluster_of_topology(pcie, base(), "topo.txt");
  CHECK(joined.wiring.hub == NodeHub::kPcie);
  CHECK(joined.node_link->bytes_per_second == 31.5e9);
  CHECK_THROWS_AS(cluster_of_topology({}, base(), "nothing"), SpecError);
}

TEST_CASE("what is no topology is refused in a sentence with its line") {
  CHECK(refused_matrix("No devices were found\n") ==
        "topo.txt:1: there is no table with a column GPU0: give what `nvidia-smi topo -m` prints");
  CHECK(refused_matrix(pair_of("NV0")) == "topo.txt:2: NV0 is none of X, NV#, PIX, PXB, PHB, NODE and SYS");
  CHECK(refused_matrix("     GPU0 GPU1\nGPU0 X\n") ==
        "topo.txt:2: GPU0 has 1 cells and the head 2 columns: give the whole table that `nvidia-smi topo -m` prints");
  CHECK(refused_matrix("     GPU0 GPU1\nGPU0 X NV4\n").find("the head names 2 GPUs and 1 have a row") !=
        std::string::npos);
  CHECK(refused_matrix("     GPU0 GPU1\nGPU0 X NV4\nGPU1 SYS X\n").find("GPU0 and GPU1 see different things") !=
        std::string::npos);
}

}  // namespace plumb::test
