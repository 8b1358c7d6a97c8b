#include "tests/planner/fixtures.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace plumb::test {

std::string source_text(const std::string& path) {
  const char* root = std::getenv("PLUMB_SOURCE");
  std::ifstream file(std::string(root == nullptr ? "." : root) + "/" + path);
  if (!file) throw std::runtime_error("cannot read " + path + ": set PLUMB_SOURCE to the source tree");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> preset_names(const std::string& folder) {
  const char* root = std::getenv("PLUMB_SOURCE");
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(root == nullptr ? "." : root) + "/tools/specs/" + folder)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

ModelSpec preset_model(const std::string& name) {
  return parse_model(source_text("tools/specs/models/" + name + ".json"), name);
}

ClusterSpec preset_cluster(const std::string& name_and_devices) {
  const ClusterName name = parse_cluster_name(name_and_devices);
  ClusterSpec cluster = parse_cluster(source_text("tools/specs/clusters/" + name.preset + ".json"), name.preset);
  return name.devices ? resize(std::move(cluster), *name.devices) : cluster;
}

ClusterSpec round_cluster(int devices) {
  ClusterSpec cluster;
  cluster.name = "round";
  cluster.device = {.name = "round device",
                    .peak_flops_per_second = {{Precision::kFp32, 10e12}, {Precision::kBf16, 100e12}},
                    .memory_bytes = std::int64_t{16} << 30,
                    .memory_bytes_per_second = 1e12};
  cluster.devices_per_node = 4;
  cluster.node_link = LinkSpec{.bytes_per_second = 100e9, .latency = Seconds{1e-6}};
  cluster.network = LinkSpec{.bytes_per_second = 10e9, .latency = Seconds{10e-6}};
  return resize(std::move(cluster), devices);
}

ModelSpec small_gpt() {
  return parse_model(R"({"name": "small", "layers": 8, "hidden": 1024, "heads": 8, "ffn": 4096, "vocab": 8192,
                         "positions": 512, "norm": "layer", "mlp": "gelu", "qkv_bias": true, "linear_bias": true})",
                     "small");
}

SearchResult found_layouts(const ModelSpec& model, const ClusterSpec& cluster, const TrainingSpec& training,
                           const LayoutRequest& request, const SearchOptions& options) {
  Pricing pricing(model, cluster, training);
  return search_layouts(pricing, request, options);
}

}  // namespace plumb::test
