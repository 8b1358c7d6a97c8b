#include "planner/price/collective/nccl_tables.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace plumb { inline namespace planner {
namespace {

constexpr int kGenerationCount = 4;

std::size_t index(NcclAlgorithm algorithm) {
  return static_cast<std::size_t>(algorithm);
}
std::size_t index(NcclProtocol protocol) {
  return static_cast<std::size_t>(protocol);
}
std::size_t index(NcclGeneration generation) {
  return static_cast<std::size_t>(generation);
}
std::size_t by_nodes(int nodes) {
  return static_cast<std::size_t>(std::min(nodes, 3) - 1);
}

// Tables by [algorithm][protocol]: Tree, Ring, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT; LL, LL128, Simple.
constexpr double kBase[kNcclAlgorithmCount][kNcclProtocolCount] = {{6.8, 14, 8.4}, {6.6, 14, 8.4}, {}, {}, {}, {},
                                                                   {8, 8, 8}};
constexpr double kHop[3][kNcclAlgorithmCount][kNcclProtocolCount] = {
    {{0.6, 1.25, 4}, {0.6, 1.9, 3.4}, {0, 0, 3.7}, {0, 0, 2.8}, {0, 0, 25}, {0, 0, 25}, {0, 0, 4}},
    {{1, 1.9, 4}, {1, 2.5, 5.7}, {0, 0, 3.7}, {0, 0, 2.8}, {}, {}, {0, 0, 4}},
    {{5, 8.5, 14}, {2.7, 4, 14}, {0, 0, 31}, {0, 0, 30}, {0, 0, 18}, {0, 0, 20.9}, {0, 0, 14}}};

// Tables by [generation] and by [generation][nodes].
constexpr double kLLOneNode[kGenerationCount] = {39, 87.7, 141, 282};
constexpr double kRingLL128[kGenerationCount] = {20, 20, 36.7, 40};
constexpr double kTreeLL128[kGenerationCount][3] = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}};
constexpr double kTreeSimple[kGenerationCount][3] = {
    {26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}};
constexpr double kNvlsTree[kGenerationCount][3] = {{}, {}, {0, 57.7, 45.5}, {0, 96, 80}};
constexpr double kNvlsEfficiency[kGenerationCount] = {0, 0, 0.85, 0.74};

// A table by [protocol][floor(log2(bytes / 64))].
constexpr int kCorrectedSizes = 23;
constexpr double kTreeCorrection[kNcclProtocolCount][kCorrectedSizes] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}};

}  // namespace

const char* algorithm_name(NcclAlgorithm algorithm) {
  constexpr const char* kNames[] = {"Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
  return kNames[index(algorithm)];
}

const char* protocol_name(NcclProtocol protocol) {
  constexpr const char* kNames[] = {"LL", "LL128", "Simple"};
  return kNames[index(protocol)];
}

double base_latency_us(NcclAlgorithm algorithm, NcclProtocol protocol) {
  return kBase[index(algorithm)][index(protocol)];
}

double hop_latency_us(NcclWire wire, NcclAlgorithm algorithm, NcclProtocol protocol) {
  return kHop[static_cast<std::size_t>(wire)][index(algorithm)][index(protocol)];
}

double network_post_us(HostCpu cpu, NcclProtocol protocol) {
  return (cpu == HostCpu::kAmd ? 2.0 : 1.0) * (protocol == NcclProtocol::kSimple ? 3 : 1);
}

double ll_bus_cap(NcclGeneration generation, HostCpu cpu, int nodes) {
  if (nodes == 1) return kLLOneNode[index(generation)];
  if (cpu == HostCpu::kAmd) return nodes == 2 ? 22.5 : 19;
  return nodes == 2 ? 39 : 20.4;
}

double ring_ll128_channel_cap(NcclGeneration generation) {
  return kRingLL128[index(generation)];
}

double tree_ll128_channel_cap(NcclGeneration generation, int nodes) {
  return kTreeLL128[index(generation)][by_nodes(nodes)];
}

double tree_simple_channel_cap(NcclGeneration generation, int nodes) {
  return kTreeSimple[index(generation)][by_nodes(nodes)];
}

double nvls_tree_channel_cap(NcclGeneration generation, int nodes) {
  return kNvlsTree[index(generation)][by_nodes(nodes)];
}

double nvls_efficiency(NcclGeneration generation) {
  return kNvlsEfficiency[index(generation)];
}

double tree_correction(NcclProtocol protocol, std::int64_t bytes) {
  const int size = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes) / 64)) - 1;
  return size < 0 || size >= kCorrectedSizes ? 1 : kTreeCorrection[index(protocol)][size];
}

}}  // namespace plumb::planner
