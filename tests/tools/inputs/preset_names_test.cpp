#include "tools/inputs/preset_names.h"

#include <doctest/doctest.h>

namespace plumb::test {
namespace {

/// Returns the name that is meant; empty if there is none.
std::string spelled(const std::vector<std::string>& names, std::string_view text) {
  const std::vector<std::string> meant = presets_spelled(names, text);
  REQUIRE(meant.size() <= 1);
  return meant.empty() ? std::string{} : meant.front();
}

const std::vector<std::string> kClusterNames{"a100", "a100-40gb", "h100", "h100-500w", "p3", "v100"};
const std::vector<std::string> kModelNames{"bert-base", "llama-3-70b", "llama-3-8b", "llama-3.1-8b", "qwen3-8b"};

}  // namespace

TEST_CASE("clusters are found by the full names of their devices and machines") {
  for (const char* text : {"a100", "A100-80GB", "A100-SXM4-80GB", "NVIDIA A100 80GB", "dgx-a100"})
    CHECK(spelled(kClusterNames, text) == "a100");
  CHECK(spelled(kClusterNames, "A100-SXM4-40GB") == "a100-40gb");
  CHECK(spelled(kClusterNames, "h100-sxm5") == "h100");
  CHECK(spelled(kClusterNames, "v100-16gb") == "p3");
  CHECK(spelled(kClusterNames, "h200").empty());  // it is not among these
}

TEST_CASE("a GPU's preset is found by the name that its driver gives it") {
  const std::vector<std::string> clusters{"a100",      "a100-40gb", "b200", "gb200-nvl72", "h100",
                                          "h100-500w", "l4",        "l40s", "p5",          "rtx4090"};
  for (const auto& [gpu, preset] :
       std::vector<std::pair<std::string, std::string>>{{"NVIDIA H100 80GB HBM3", "h100"},
                                                        {"NVIDIA A100-SXM4-40GB", "a100"},
                                                        {"NVIDIA GB200", "gb200-nvl72"},
                                                        {"NVIDIA B200", "b200"},
                                                        {"NVIDIA L40S", "l40s"},
                                                        {"NVIDIA L4", "l4"},
                                                        {"NVIDIA GeForce RTX 4090", "rtx4090"},
                                                        {"NVIDIA L40", ""},
                                                        {"Quadro P5000", ""}}) {
    CAPTURE(gpu);
    CHECK(preset_of_gpu(clusters, gpu) == preset);
  }
}

TEST_CASE("models are found by what repositories call them") {
  for (const char* text : {"llama3-8b", "Meta-Llama-3-8B", "Llama-3-8B-Instruct"})
    CHECK(spelled(kModelNames, text) == "llama-3-8b");
  CHECK(spelled(kModelNames, "bert-base") == "bert-base");
  CHECK(spelled(kModelNames, "Qwen3-8B-Base") == "qwen3-8b");
  CHECK(spelled(kModelNames, "llama").empty());
}

TEST_CASE("an exact name wins, and what may be two is both") {
  const std::vector<std::string> names{"gpt3-1.3b", "gpt3-13b", "gpt2"};
  CHECK(presets_spelled(names, "gpt3-13b") == std::vector<std::string>{"gpt3-13b"});
  CHECK(presets_spelled(names, "GPT3-13B") == std::vector<std::string>{"gpt3-13b"});
  CHECK(presets_spelled(names, "gpt3-1.3b") == std::vector<std::string>{"gpt3-1.3b"});
  CHECK(presets_spelled(names, "gpt313b") == std::vector<std::string>{"gpt3-1.3b", "gpt3-13b"});
  CHECK(presets_spelled(names, "GPT3 13B-hf") == std::vector<std::string>{"gpt3-1.3b", "gpt3-13b"});
  CHECK(presets_spelled(names, ".").empty());
}

TEST_CASE("nothing is proposed for what is like no name") {
  for (const char* text : {".", "model.onnx", "x", "zzzzzzzz"})
    CHECK(nearest_preset({"alexnet", "mlp", "gpt2"}, text).empty());
}

TEST_CASE("the nearest name is one that the text begins with, or is spelled alike") {
  CHECK(nearest_preset(kClusterNames, "a100-80gb-nvlink") == "a100");
  CHECK(nearest_preset(kClusterNames, "a100-40gb-x") == "a100-40gb");
  CHECK(nearest_preset(kClusterNames, "h10") == "h100");
  CHECK(nearest_preset(kModelNames, "lama-3-8b") == "llama-3-8b");
}

TEST_CASE("devices without a preset are said to be like one that has") {
  REQUIRE(cluster_not_held("H800") != nullptr);
  CHECK(cluster_not_held("H800")->preset == "h100");
  CHECK(cluster_not_held("h100-PCIe")->difference.find("756") != std::string_view::npos);
  CHECK(cluster_not_held("h100") == nullptr);
}

}  // namespace plumb::test
