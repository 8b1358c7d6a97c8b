#include "tools/inputs/file_kinds.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/logs/nccl_tests_log.h"
#include "schedules/forms/strict_json.h"
#include "tools/io/files.h"

namespace plumb { inline namespace tools {
namespace {

struct KnownKind {
  FileKind kind = FileKind::kForeign;
  std::string_view name;    ///< the kind in words, with its article
  std::string_view reader;  ///< the verb or option that reads it; where there is none, the remedy
};

constexpr std::string_view kConfigs =
    "`plumb import` reads its layout; or give its numbers as --global-batch, --precision and --layout";

constexpr KnownKind kModelFile{FileKind::kModel, "a model", "`plumb plan MODEL CLUSTER` takes it"};
constexpr KnownKind kGraphFile{FileKind::kModel, "a layer graph",
                               "`plumb plan MODEL CLUSTER` and `plumb partition` take it"};
constexpr KnownKind kConfigFile{FileKind::kModel, "a Hugging Face config",
                                "`plumb plan MODEL CLUSTER` takes it as a model"};
constexpr KnownKind kClusterFile{FileKind::kCluster, "a cluster", "`plumb plan MODEL CLUSTER` takes it"};
constexpr KnownKind kStackFile{FileKind::kStack, "a training stack", "--stack takes it"};
constexpr KnownKind kPlanFile{FileKind::kPlan, "a plan",
                              "`plumb simulate`, memory, whatif, run, validate and schedule search take it"};
constexpr KnownKind kLayoutFile{FileKind::kLayout, "a layout's keys", "--layout takes it"};
constexpr KnownKind kScheduleFile{FileKind::kSchedule, "a schedule",
                                  "`plumb schedule show` and `plumb simulate --schedule` take it"};
constexpr KnownKind kCostsFile{FileKind::kCosts, "a file of costs",
                               "--costs of `plumb simulate` and `plumb schedule search` takes it"};
constexpr KnownKind kCertificateFile{FileKind::kCertificate, "a schedule's certificate",
                                     "`plumb schedule check SCHEDULE --certificate FILE` takes it"};
constexpr KnownKind kTopologyFile{FileKind::kTopology, "a topology", "`plumb simulate --topology` takes it"};
constexpr KnownKind kLinkFile{FileKind::kLink, "a measured link",
                              "--link of `plumb run` and `plumb validate` takes it"};
constexpr KnownKind kTraceFile{FileKind::kTrace, "a Chrome trace", "`plumb trace info` reads it"};
constexpr KnownKind kRowsFile{FileKind::kRows, "a file of published rows", "`plumb score` reads it"};
constexpr KnownKind kPiperFile{FileKind::kProfile, "an input of Piper or dnn-partitioning",
                               "`plumb partition` reads it"};
constexpr KnownKind kNcclLog{FileKind::kMeasurement, "an nccl-tests log", "`plumb calibrate --from` reads it"};
constexpr KnownKind kDeepSpeed{FileKind::kForeign, "a DeepSpeed config", kConfigs};
constexpr KnownKind kPlanAnswer{FileKind::kForeign, "the answer of `plumb plan --json`",
                                "`plumb plan ... -o FILE` writes the plan itself"};
constexpr KnownKind kSimulateAnswer{FileKind::kForeign, "the answer of `plumb simulate --json`",
                                    "no verb reads it: give the plan that was simulated"};

struct KnownEnding {
  std::string_view ending;
  KnownKind kind;
};

constexpr std::array kOtherEndings{
    KnownEnding{".onnx",
                {FileKind::kModel, "an ONNX model", "`plumb plan MODEL CLUSTER` and `plumb partition` take it"}},
    KnownEnding{".safetensors", {FileKind::kForeign, "a file of weights", "give the config.json beside it"}},
    KnownEnding{".pt", {FileKind::kForeign, "a file of weights", "give the model's config.json"}},
    KnownEnding{".pth", {FileKind::kForeign, "a file of weights", "give the model's config.json"}},
    KnownEnding{".ckpt", {FileKind::kForeign, "a file of weights", "give the model's config.json"}},
    KnownEnding{".yaml", {FileKind::kForeign, "a YAML config", kConfigs}},
    KnownEnding{".yml", {FileKind::kForeign, "a YAML config", kConfigs}},
    KnownEnding{".toml", {FileKind::kForeign, "a TOML config", kConfigs}},
    KnownEnding{".zst", {FileKind::kForeign, "a compressed file", "unpack it first"}},
};

constexpr std::array<std::string_view, 4> kOwnEndings{".json", ".txt", ".csv", ".log"};

bool ends_in(std::string_view path, std::string_view ending) {
  return path.size() > ending.size() &&
         std::ranges::equal(path.substr(path.size() - ending.size()), ending,
                            [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
}

std::optional<KnownKind> kind_of_object(const nlohmann::json& json) {
  const auto has = [&](const char* key) { return json.contains(key); };
  if (has("traceEvents")) return kTraceFile;
  if (has("plumb_version")) return kPlanFile;
  if (has("model_type")) return kConfigFile;
  for (const char* key : {"train_batch_size", "train_micro_batch_size_per_gpu", "zero_optimization"}) {
    if (has(key)) return kDeepSpeed;
  }
  if (has("nodes") && has("edges")) return kPiperFile;
  if (has("nodes") && has("links")) return kTopologyFile;
  if (has("nodes")) return kGraphFile;
  if (has("hidden") && has("layers")) return kModelFile;
  if (has("device") && has("node")) return kClusterFile;
  if (has("fused_softmax") || has("kernel_launch_us")) return kStackFile;
  if (has("stages") && has("microbatches")) return kScheduleFile;
  if (has("parts")) return kCostsFile;
  if (has("costs_ps")) return kCertificateFile;
  if (has("tp") || has("pp") || has("dp")) return kLayoutFile;
  if (has("link")) return kLinkFile;
  if (has("rows")) return kRowsFile;
  if (has("ranked") && has("best")) return kPlanAnswer;
  if (has("makespan_s") && has("critical_path")) return kSimulateAnswer;
  return std::nullopt;
}

std::optional<KnownKind> kind_of_text(const std::string& text) {
  if (is_nccl_tests_log(text)) return kNcclLog;
  nlohmann::json json;
  try {
    json = parse_json(text, "");
  } catch (const SpecError&) {
    return std::nullopt;
  }
  if (json.is_object()) return kind_of_object(json);
  const bool is_list_of_events = json.is_array() && !json.empty() && json[0].is_object() && json[0].contains("ph");
  if (is_list_of_events) return kTraceFile;
  return std::nullopt;
}

std::optional<KnownKind> kind_of(const std::string& path) {
  for (const KnownEnding& known : kOtherEndings) {
    if (ends_in(path, known.ending)) return known.kind;
  }
  constexpr std::uintmax_t kLargest = std::uintmax_t{1} << 24;  // a better message may not cost much time
  std::error_code fault;
  const std::uintmax_t size = std::filesystem::file_size(path, fault);
  if (fault || size > kLargest || !std::filesystem::is_regular_file(path, fault)) return std::nullopt;
  return kind_of_text(read_file(path));
}

std::string_view wanted_name(FileKind kind) {
  switch (kind) {
    case FileKind::kModel:
      return kModelFile.name;
    case FileKind::kCluster:
      return kClusterFile.name;
    case FileKind::kStack:
      return kStackFile.name;
    case FileKind::kPlan:
      return kPlanFile.name;
    case FileKind::kLayout:
      return kLayoutFile.name;
    case FileKind::kSchedule:
      return kScheduleFile.name;
    case FileKind::kCosts:
      return kCostsFile.name;
    case FileKind::kCertificate:
      return kCertificateFile.name;
    case FileKind::kTopology:
      return kTopologyFile.name;
    case FileKind::kLink:
      return kLinkFile.name;
    case FileKind::kTrace:
      return kTraceFile.name;
    case FileKind::kRows:
      return kRowsFile.name;
    case FileKind::kProfile:
      return "a profile";
    case FileKind::kMeasurement:
      return "a measurement";
    case FileKind::kForeign:
      break;
  }
  return "another file";
}

}  // namespace

bool has_known_ending(std::string_view path) {
  return std::ranges::any_of(kOwnEndings, [&](std::string_view ending) { return ends_in(path, ending); }) ||
         std::ranges::any_of(kOtherEndings, [&](const KnownEnding& known) { return ends_in(path, known.ending); });
}

bool is_of_kind(FileKind kind, const std::string& path) {
  const std::optional<KnownKind> known = kind_of(path);
  return known && known->kind == kind;
}

std::string wrong_kind(FileKind wanted, const std::string& path) {
  const std::optional<KnownKind> kind = kind_of(path);
  if (!kind || kind->kind == wanted) return {};
  return fmt::format("{}: this is {}, and {} is wanted: {}", path, kind->name, wanted_name(wanted), kind->reader);
}

}}  // namespace plumb::tools
