#include "tools/inputs/inputs.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/spec/cluster_sites.h"
#include "planner/spec/huggingface/huggingface.h"
#include "planner/spec/megatron_layout.h"
#include "planner/spec/preset_sources.h"
#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/strict_json.h"
#include "schedules/forms/whole_number.h"
#include "schedules/limits.h"
#include "schedules/units.h"
#include "tools/inputs/file_kinds.h"
#include "tools/inputs/onnx_input.h"
#include "tools/inputs/preset_names.h"
#include "tools/inputs/presets.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"

namespace plumb { inline namespace tools {
namespace {

/// Returns the preset of a kind that the name means, in any case or spelling. Throws InputError with the nearest name
/// if there is none, and with all that may be meant if there are several.
const Preset& preset_named(Preset::Kind kind, const std::string& name) {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    if (preset.kind == kind) names.emplace_back(preset.name);
  }
  const std::string_view what = kind == Preset::Kind::kModel     ? "model"
                                : kind == Preset::Kind::kCluster ? "cluster"
                                                                 : "stack";
  const std::vector<std::string> spelled = presets_spelled(names, name);
  if (spelled.size() > 1) {
    throw InputError(fmt::format("\"{}\" may be one of several {} presets, {}: name one of them", name, what,
                                 fmt::join(spelled, " and ")));
  }
  for (const Preset& preset : presets()) {
    if (!spelled.empty() && preset.kind == kind && preset.name == spelled.front()) return preset;
  }
  if (const LikeCluster* like = cluster_not_held(name); kind == Preset::Kind::kCluster && like != nullptr) {
    throw InputError(fmt::format(
        "there is no cluster preset \"{}\": it is an {} with {}; `plumb clusters {}` prints a file to change so", name,
        like->preset, like->difference, like->preset));
  }
  const std::string nearest = nearest_preset(names, name);
  throw InputError(
      fmt::format("there is no {} preset \"{}\": {}`plumb {}s` names them all; a file's name ends in .json", what, name,
                  nearest.empty() ? "" : fmt::format("did you mean \"{}\"? ", nearest), what));
}

/// Returns the model of a file in Plumb's form, or of a Hugging Face config.json, whose notes go to stderr.
ModelSpec model_file(const std::string& name_or_path) {
  const std::string text = read_text_file(name_or_path);
  const nlohmann::json document = parse_json(text, name_or_path);
  if (!document.is_object() || !document.contains("model_type")) {
    return model_from_json(without_format(FileForm::kModel, document, name_or_path), name_or_path);
  }
  const ImportedModel imported = model_from_huggingface(text, name_or_path);
  if (!imported.note.empty()) print_note(fmt::format("{}: {}", name_or_path, imported.note));
  if (!imported.ignored_keys.empty()) {
    print_note(fmt::format("{}: keys without bearing on size or cost, ignored: {}", name_or_path,
                           fmt::join(imported.ignored_keys, ", ")));
  }
  return imported.model;
}

/// Returns the path of the configuration in a folder of Hugging Face's, or the file's own path.
std::string model_path(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return path;
  const std::string config = (std::filesystem::path(path) / "config.json").string();
  if (std::filesystem::exists(config)) return config;
  throw InputError(
      fmt::format("{} is a folder without a config.json: give a Hugging Face model's folder, or a file", path));
}

}  // namespace

bool names_file(const std::string& name) {
  return has_known_ending(name) || name.find('/') != std::string::npos;
}

ModelSpec model_input(const std::string& name_or_path) {
  if (const std::optional<OnnxName> onnx = onnx_name(name_or_path)) return onnx_input(*onnx);
  if (!names_file(name_or_path))
    return parse_model(preset_named(Preset::Kind::kModel, name_or_path).text, name_or_path);
  const std::string path = model_path(name_or_path);
  return read_as(FileKind::kModel, path, [&] { return model_file(path); });
}

namespace {

/// Returns the link of "GB_PER_S" or "GB_PER_S/MICROSECONDS".
LinkSpec link_between_sites(const std::string& cluster, const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto rate = whole_number<double>(text.substr(0, slash));
  const auto latency = slash == std::string::npos ? std::optional(0.0) : whole_number<double>(text.substr(slash + 1));
  if (!rate || !latency || *rate <= 0 || *latency < 0)
    throw UsageError(fmt::format(
        "cluster {}: \"@{}\" is no link between sites: give its GB/s, and its latency in us behind a slash, as in "
        "@10/5000",
        cluster, text));
  return {.bytes_per_second = *rate * kGiga, .latency = Seconds{*latency * kMicro}};
}

ClusterSpec site_input(const std::string& name_or_path) {
  const ClusterName name = parse_cluster_name(name_or_path);
  ClusterSpec cluster = names_file(name.preset)
                            ? read_as(FileKind::kCluster, name.preset,
                                      [&] { return parse_cluster(read_text_file(name.preset), name.preset); })
                            : parse_cluster_preset(preset_named(Preset::Kind::kCluster, name.preset).text, name.preset);
  if (!name.devices) return cluster;
  const int domain = cluster.devices_per_node;
  cluster = resize(std::move(cluster), *name.devices);
  if (cluster.devices_per_node != domain) {
    print_note(fmt::format("{}: {} devices of each domain of {} are taken, which fills all alike", name_or_path,
                           cluster.devices_per_node, domain));
  }
  return cluster;
}

}  // namespace

ClusterSpec cluster_input(const std::string& name_or_path) {
  if (name_or_path.find('+') == std::string::npos || std::filesystem::exists(name_or_path))
    return site_input(name_or_path);
  const std::size_t at = name_or_path.rfind('@');
  std::optional<LinkSpec> between;
  if (at != std::string::npos) between = link_between_sites(name_or_path, name_or_path.substr(at + 1));
  std::vector<ClusterSpec> sites;
  for (std::string left = name_or_path.substr(0, at) + "+"; !left.empty(); left.erase(0, left.find('+') + 1))
    sites.push_back(site_input(left.substr(0, left.find('+'))));
  return read_option([&] { return joined_sites(std::move(sites), between); });
}

StackSpec stack_input(const std::string& name_or_path) {
  if (!names_file(name_or_path))
    return parse_stack(preset_named(Preset::Kind::kStack, name_or_path).text, name_or_path);
  return read_as(FileKind::kStack, name_or_path,
                 [&] { return parse_stack(read_text_file(name_or_path), name_or_path); });
}

StackLibrary assumable_stacks(const QuestionArguments& question) {
  StackLibrary stacks;
  if (!question.stack.empty()) return stacks;
  for (const Preset& preset : presets()) {
    const std::string name(preset.name);
    if (preset.kind != Preset::Kind::kStack) continue;
    StackSpec& stack = stacks.emplace(name, parse_stack(preset.text, name)).first->second;
    if (question.headroom) stack.memory_headroom = *question.headroom;
  }
  return stacks;
}

TrainingSpec training_input(const QuestionArguments& question, const ModelSpec& model, const ClusterSpec& cluster) {
  if (question.global_batch < 1)
    throw UsageError("--global-batch is missing: give the sequences of one optimizer step, 1 or more");
  const auto at_most = [](std::string_view option, std::int64_t given, std::int64_t most) {
    if (given > most)
      throw UsageError(fmt::format("{} {} is more than any training has: give at most {}", option, given, most));
  };
  at_most("--global-batch", question.global_batch, kMostSequences);
  at_most("--seq", question.sequence, kMostTokens);
  TrainingSpec training{.global_batch = question.global_batch, .sequence = question.sequence};
  if (training.sequence == 0) training.sequence = model.sequence;
  if (training.sequence == 0)
    throw SpecError(fmt::format("{} does not say how long its sequences are: give --seq", model.name));
  const auto& peaks = cluster.device.peak_flops_per_second;
  if (!question.precision.empty()) {
    training.precision = read_option([&] { return precision_from_name(question.precision, "--precision"); });
  } else {
    constexpr Precision kByPreference[] = {Precision::kBf16, Precision::kFp16, Precision::kFp32};
    const auto known = std::ranges::find_if(kByPreference, [&](Precision p) { return peaks.contains(p); });
    if (known != std::end(kByPreference)) training.precision = *known;
  }
  if (!question.optimizer.empty())
    training.optimizer = read_option([&] { return optimizer_from_name(question.optimizer, "--optimizer"); });
  if (!question.stack.empty() && question.stack != kOwnExecutor) training.stack = stack_input(question.stack);
  if (!question.fp8_recipe.empty()) {
    if (!training.stack) throw UsageError("--fp8-recipe is a framework's: name it by --stack");
    if (!is_quantized(training.precision))
      throw UsageError(
          fmt::format("--fp8-recipe says how products are quantized, and --precision is {}: give "
                      "--precision fp8",
                      precision_name(training.precision)));
    const Fp8Recipe own = training.stack->fp8;
    training.stack = read_option([&] { return with_fp8_recipe(*training.stack, question.fp8_recipe); });
    if (training.stack->fp8 == own) {
      print_note(fmt::format("recipe {} has the figures that stack {} has without it", question.fp8_recipe,
                             training.stack->name));
    }
  }
  if (training.stack && question.headroom) training.stack->memory_headroom = *question.headroom;
  return training;
}

LayoutSpace space_input(const QuestionArguments& question) {
  const std::string_view text = question.layout;
  const std::string_view first = text.substr(0, text.find(','));
  const bool is_file = first.find('=') == std::string_view::npos && names_file(std::string(first));
  const std::string_view keys = is_file ? text.substr(std::min(first.size() + 1, text.size())) : text;
  LayoutSpace space = read_option([&] { return parse_layout_space(keys); });
  if (is_file) {
    const std::string file(first);
    const LayoutSpace of_file =
        read_as(FileKind::kLayout, file, [&] { return parse_layout_space_file(read_text_file(file), file); });
    space = read_option([&] { return joined(of_file, space); });
  }
  if (!question.split.empty()) {
    if (!space.split.is_open()) throw UsageError("the split is given twice: keep --split or the layout's split=");
    const bool as_megatron = question.split.find('E') != std::string::npos;
    space.split.named = {read_option(
        [&] { return as_megatron ? split_of_megatron_layout(question.split) : parse_split(question.split); })};
  }
  space.wide = question.space == "wide";
  return space;
}

LayoutRequest layout_input(const QuestionArguments& question) {
  const LayoutSpace space = space_input(question);
  LayoutRequest fixed = fixed_keys(space);
  if (to_text(LayoutSpace(fixed)) != to_text(space))
    throw UsageError(fmt::format("--layout {}: this asks about one layout: give each key one value", to_text(space)));
  return fixed;
}

}}  // namespace plumb::tools
