// The executor's losses, gradients and weights of small models after some steps are held against those that
// tests/tools/torch/oracle.py computes in PyTorch. Stored values are always compared, and fresh ones where a python
// with torch is found.

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/executor/small_model.h"
#include "tools/runs/layer_models.h"

namespace plumb::test {
using nlohmann::json;

namespace {

constexpr double kTolerance = 1e-4;

std::string script_folder() {
  const char* source = std::getenv("PLUMB_SOURCE");
  return std::string(source == nullptr ? "." : source) + "/tests/tools/torch/";
}

/// Returns two such blocks between an embedding and a head.
std::vector<Layer> model_of(const Layer& block, double logit_softcap = 0) {
  return {EmbeddingLayer{.vocab = kVocab, .hidden = 16}, block, block,
          HeadLayer{.vocab = kVocab, .hidden = 16, .logit_softcap = logit_softcap}};
}

std::vector<Layer> model_named(const std::string& name) {
  if (is_layer_model(name)) return layer_model(name, name == "mlp" ? 8 : 10);
  if (name == "gemma") return model_of(capped_block(), 0.2);
  if (name == "mamba2") return model_of(mamba2_block());
  if (name.starts_with("deepseek")) {
    TransformerLayer block = latent_block();
    if (name.ends_with(" fast biases")) block.balance_rate = 0.125;
    return model_of(block);
  }
  if (name == "gpt-oss") {
    TransformerLayer block = sink_block();
    block.balance_loss = 0;
    return model_of(block);
  }
  if (name == "qwen3") return with_head_norms(llama_model(2), QueryKeyNorms::kEachHead);
  if (name == "olmo2") return with_head_norms(llama_model(2), QueryKeyNorms::kAllHeads);
  std::vector<Layer> model = name.starts_with("gpt") ? gpt_model(2) : llama_model(2);
  std::get<HeadLayer>(model.back()).tied = name.ends_with(" tied");
  return model;
}

OptimizerSettings optimizer_named(const std::string& name) {
  if (name == "SGD") return Sgd{.weight_decay = 0.01F};
  if (name == "Lion") return Lion{};
  if (name == "Adafactor") return Adafactor{};
  return AdamW{};
}

/// Returns the run of a case such as "gpt untied, AdamW, clipped", on one rank, or on two as a pipeline.
RunSpec spec_of_case(const std::string& name, int ranks) {
  const std::size_t comma = name.find(", "), second = name.find(", ", comma + 1);
  RunSpec spec = spec_of(model_named(name.substr(0, comma)),
                         make_schedule(ranks == 1 ? "naive" : "zb-h1", {.ranks = ranks, .microbatches = 4}));
  spec.optimizer = optimizer_named(name.substr(comma + 2, second == std::string::npos ? second : second - comma - 2));
  if (second != std::string::npos) spec.clip_norm = 0.5;
  spec.steps = 4;
  return spec;
}

/// Returns the largest difference of a tensor's summary: of an element relative to the largest one, or of the norm
/// relative to itself.
double difference(const std::vector<float>& values, const json& expected) {
  constexpr double kNothing = 1e-30;
  const auto largest = expected.at("largest").get<double>(), norm = expected.at("norm").get<double>();
  const double unit = std::max(largest, kNothing);
  double own_largest = 0, squares = 0;
  for (const float value : values) {
    own_largest = std::max(own_largest, std::abs(double(value)));
    squares += double(value) * double(value);
  }
  double worst =
      std::max(std::abs(own_largest - largest) / unit, std::abs(std::sqrt(squares) - norm) / std::max(norm, kNothing));
  for (std::size_t j = 0; j < expected.at("values").size(); ++j) {
    const double value = values[(2 * j + 1) * values.size() / 12];
    worst = std::max(worst, std::abs(value - expected.at("values").at(j).get<double>()) / unit);
  }
  return worst;
}

void check_values(const ModelValues& values, const json& expected) {
  REQUIRE(values.size() == expected.size());
  for (std::size_t layer = 0; layer < values.size(); ++layer) {
    REQUIRE(values[layer].size() == expected[layer].size());
    for (std::size_t i = 0; i < values[layer].size(); ++i) {
      if (expected[layer][i].is_null()) continue;
      CAPTURE(layer);
      CAPTURE(i);
      CHECK(difference(values[layer][i], expected[layer][i]) <= kTolerance);
    }
  }
}

void check_case(const std::string& name, const json& expected) {
  CAPTURE(name);
  for (const int ranks : {1, 2}) {
    CAPTURE(ranks);
    const RunResult result = run(spec_of_case(name, ranks), {.capture_gradients = true, .capture_weights = true});
    for (std::size_t step = 0; step < result.losses.size(); ++step)
      CHECK(result.losses[step] == doctest::Approx(expected.at("losses").at(step).get<double>()).epsilon(kTolerance));
    check_values(result.gradients.front(), expected.at("gradients").at(0));
    check_values(result.gradients.back(), expected.at("gradients").at(1));
    check_values(result.weights, expected.at("weights"));
  }
}

void check_document(const json& document) {
  for (const auto& [name, expected] : document.at("cases").items()) check_case(name, expected);
}

/// Output and exit status of a command.
struct Output {
  std::string text;
  int status = 0;
};
Output output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  Output output;
  std::array<char, 65536> block{};
  while (const std::size_t read = std::fread(block.data(), 1, block.size(), pipe))
    output.text.append(block.data(), read);
  output.status = pclose(pipe);
  return output;
}

/// Returns PLUMB_TORCH_PYTHON, or the first usual python that has torch; empty if there is none.
std::string python_with_torch() {
  const char* wanted = std::getenv("PLUMB_TORCH_PYTHON");
  for (const std::string& python :
       {std::string(wanted == nullptr ? "" : wanted), std::string("python3"), std::string("/usr/bin/python3")})
    if (!python.empty() && output_of(python + " -c 'import torch, numpy' 2>/dev/null").status == 0) return python;
  return "";
}

}  // namespace

TEST_CASE("losses, gradients and weights of each small model are PyTorch's, as they were stored") {
  std::ifstream file(script_folder() + "oracle.json");
  REQUIRE(file.good());
  const json document = json::parse(file);
  CHECK(document.at("cases").size() == 17);
  check_document(document);
}

TEST_CASE("losses, gradients and weights are those of the PyTorch of this machine") {
  const std::string python = python_with_torch();
  if (python.empty()) {
    MESSAGE("skipped: no python with torch and numpy (set PLUMB_TORCH_PYTHON to one)");
    return;
  }
  const Output fresh = output_of(python + " '" + script_folder() + "oracle.py'");
  REQUIRE(fresh.status == 0);
  check_document(json::parse(fresh.text));
}

}  // namespace plumb::test
