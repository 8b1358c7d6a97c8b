#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/layer.h"
#include "planner/spec/cluster_spec.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/preset_sources.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/json_text.h"
#include "schedules/units.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/presets.h"
#include "tools/io/console.h"
#include "tools/reports/table.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

template <typename Visit>
void for_each_preset(Preset::Kind kind, Visit visit) {
  for (const Preset& preset : presets()) {
    if (preset.kind == kind) visit(preset);
  }
}

ordered_json with_figures(const ModelSpec& model) {
  ordered_json json = to_json(model);
  json.update(shown_figures(model));
  return json;
}

}  // namespace

int models_verb(const PresetArguments& arguments) {
  if (!arguments.name.empty()) {
    print_answer(json_answer(with_format(FileForm::kModel, with_figures(model_input(arguments.name)))));
    return kDone;
  }
  ordered_json list = ordered_json::array();
  TextTable table{
      .head = {"model", "parameters", "layers", "hidden", "heads", "kv heads", "ffn", "vocabulary", "sequence"}};
  TextTable graphs{.head = {"layer graph", "parameters", "forward", "nodes", "sample", "runs on the cpu"}};
  for_each_preset(Preset::Kind::kModel, [&](const Preset& preset) {
    const ModelSpec model = parse_model(preset.text, std::string(preset.name));
    list.push_back(with_figures(model));
    if (model.graph) {
      const std::vector<GraphNode> nodes = graph_nodes(*model.graph);
      graphs.rows.push_back(
          {std::string(preset.name), parameters_text(static_cast<double>(parameter_count(nodes))),
           fmt::format("{:.4g} GFLOP", forward_flops(nodes) / kGiga), std::to_string(nodes.size()),
           nodes.front().tokens ? fmt::format("{} tokens", model.sequence) : planner::to_text(nodes.front().shape),
           is_runnable(nodes) ? "yes" : "no"});
      return;
    }
    table.rows.push_back({std::string(preset.name), parameters_text(static_cast<double>(model_parameter_count(model))),
                          std::to_string(model.layers), std::to_string(model.hidden), std::to_string(model.heads),
                          std::to_string(model.kv_heads), std::to_string(model.ffn), std::to_string(model.vocab),
                          std::to_string(model.sequence)});
  });
  arguments.json ? print_answer(json_answer(ordered_json{{"models", list}}))
                 : print_text(to_text(table) + "\n" + to_text(graphs) +
                              "\nA file works as well: Plumb's own JSON (`plumb models NAME` shows one) or a "
                              "Hugging Face config.json.\n");
  return kDone;
}

int clusters_verb(const PresetArguments& arguments) {
  if (!arguments.name.empty()) {
    print_answer(json_answer(with_format(FileForm::kCluster, to_json(cluster_input(arguments.name)))));
    return kDone;
  }
  ordered_json list = ordered_json::array();
  TextTable table{.head = {"cluster", "device", "bf16 peak", "memory", "memory bandwidth", "devices/node", "node link",
                           "network/device"}};
  for_each_preset(Preset::Kind::kCluster, [&](const Preset& preset) {
    const ClusterSpec cluster = parse_cluster_preset(preset.text, std::string(preset.name));
    list.push_back(to_json(cluster));
    const auto peak = cluster.device.peak_flops_per_second.find(Precision::kBf16);
    const auto rate = [](const std::optional<LinkSpec>& link) {
      return link ? fmt::format("{:.3g} GB/s", link->bytes_per_second / kGiga) : "-";
    };
    table.rows.push_back(
        {std::string(preset.name), cluster.device.name,
         peak == cluster.device.peak_flops_per_second.end() ? "-" : fmt::format("{:.0f} TFLOP/s", peak->second / kTera),
         bytes_text(static_cast<double>(cluster.device.memory_bytes)),
         fmt::format("{:.0f} GB/s", cluster.device.memory_bytes_per_second / kGiga),
         std::to_string(cluster.devices_per_node), rate(cluster.node_link), rate(cluster.network)});
  });
  arguments.json ? print_answer(json_answer(ordered_json{{"clusters", list}}))
                 : print_text(to_text(table) +
                              "\nNAME:N is a cluster of N devices (h100:16). A file works as well: `plumb "
                              "clusters NAME` shows one with the\n"
                              "source of every figure, `plumb calibrate` measures one.\n");
  return kDone;
}

int stacks_verb(const PresetArguments& arguments) {
  if (!arguments.name.empty()) {
    print_answer(json_answer(with_format(FileForm::kStack, to_json(stack_input(arguments.name)))));
    return kDone;
  }
  ordered_json list = ordered_json::array();
  TextTable table{.head = {"stack", "attention", "what it is"}};
  for_each_preset(Preset::Kind::kStack, [&](const Preset& preset) {
    const StackSpec stack = parse_stack(preset.text, std::string(preset.name));
    list.push_back(to_json(stack));
    table.rows.push_back({std::string(preset.name), std::string(attention_kernel_name(stack.attention)), stack.note});
  });
  arguments.json ? print_answer(json_answer(ordered_json{{"stacks", list}}))
                 : print_text(to_text(table) +
                              "\nA file works as well: `plumb stacks NAME` shows one with the source of every "
                              "figure.\n");
  return kDone;
}

}}  // namespace plumb::tools
