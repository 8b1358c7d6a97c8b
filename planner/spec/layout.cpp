#include "planner/spec/layout.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/spec/layout_keys.h"
#include "planner/spec/rank_layout.h"
#include "schedules/error.h"
#include "schedules/forms/strict_json.h"
#include "schedules/generators/spellings.h"
#include "schedules/nearest_name.h"

namespace plumb { inline namespace planner {
namespace {

constexpr std::array<std::string_view, 3> kRecomputeNames = {"none", "selective", "full"};

/// Returns the names of all keys.
std::vector<std::string> key_names() {
  std::vector<std::string> names = {"split"};
  visit_layout_keys([&](std::string_view key, auto) { names.emplace_back(key); });
  return names;
}

std::vector<std::string_view> pieces(std::string_view text, char separator) {
  std::vector<std::string_view> result;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(separator, start), text.size());
    result.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return result;
}

std::int64_t number(std::string_view key, std::string_view text, std::int64_t smallest, std::int64_t largest) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < smallest || value > largest) {
    throw SpecError(fmt::format("layout {}={}: give a whole number from {} to {}", key, text, smallest, largest));
  }
  return value;
}

constexpr std::int64_t kLargestDegree = 1'000'000;

int degree_of(StrictObject& object, std::string_view key, std::int64_t smallest) {
  const std::int64_t value = smallest > 0 ? object.positive_integer(key) : object.non_negative_integer(key);
  if (value > kLargestDegree)
    object.fail(key, fmt::format("{} is out of range: give at most {}", value, kLargestDegree));
  return static_cast<int>(value);
}

std::vector<int> split_numbers(std::string_view text, char separator) {
  std::vector<int> split;
  for (const std::string_view piece : pieces(text, separator)) {
    split.push_back(static_cast<int>(number("split", piece, 0, kLargestDegree)));
  }
  return split;
}

/// Returns the catalogue's name where `text` spells one; other texts are returned unchanged, and refused where they are
/// looked up.
std::string schedule_named(std::string_view text) {
  const std::string_view name = schedule_spelled(text);
  return std::string(name.empty() ? text : name);
}

/// Reads value_text() of meshes.
std::vector<RankMesh> meshes_from_text(std::string_view text) {
  if (text == "none") return {};
  try {
    return parse_meshes(text, ':');
  } catch (const SpecError& error) {
    throw SpecError(fmt::format("layout meshes={}: {}", text, error.what()));
  }
}

void take(LayoutRequest& request, std::string_view key, std::string_view value) {
  const auto degree = [&] { return static_cast<int>(number(key, value, 1, kLargestDegree)); };
  if (key == "dp")
    request.data = degree();
  else if (key == "tp")
    request.tensor = degree();
  else if (key == "pp")
    request.pipeline = degree();
  else if (key == "cp")
    request.context = degree();
  else if (key == "cp_kind")
    request.context_kind = context_kind_from_name(value);
  else if (key == "ep")
    request.expert = degree();
  else if (key == "etp")
    request.expert_tensor = degree();
  else if (key == "v")
    request.chunks = degree();
  else if (key == "zero")
    request.zero = static_cast<int>(number(key, value, 0, 3));
  else if (key == "shard")
    request.shard = static_cast<int>(number(key, value, 0, kLargestDegree));
  else if (key == "sp")
    request.sequence_parallel = number(key, value, 0, 1) == 1;
  else if (key == "mbs")
    request.microbatch = number(key, value, 1, kLargestDegree);
  else if (key == "recompute")
    request.recompute = recompute_from_name(value);
  else if (key == "recompute_layers")
    request.recompute_layers = static_cast<int>(number(key, value, 0, kLargestDegree));
  else if (key == "schedule")
    request.schedule = schedule_named(value);
  else if (key == "group")
    request.group = static_cast<int>(number(key, value, 0, kLargestDegree));
  else if (key == "bucket_mib")
    request.bucket_mib = number(key, value, 0, kLargestDegree);
  else if (key == "order")
    request.order = rank_order_from_name(value);
  else if (key == "meshes")
    request.meshes = meshes_from_text(value);
  else if (key == "split")
    request.split = split_numbers(value, ':');
  else if (key == "offload") {
    request.offload = offload_from_name(value);
  } else {
    throw SpecError(fmt::format("layout {}: there is no such key: {}", key, did_you_mean(key, key_names())));
  }
}

}  // namespace

std::string_view recompute_name(Recompute recompute) {
  return kRecomputeNames[static_cast<std::size_t>(recompute)];
}

Recompute recompute_from_name(std::string_view name) {
  const auto it = std::ranges::find(kRecomputeNames, name);
  if (it == kRecomputeNames.end()) {
    throw SpecError(fmt::format("layout recompute={}: give {}", name, fmt::join(kRecomputeNames, ", ")));
  }
  return static_cast<Recompute>(it - kRecomputeNames.begin());
}

std::vector<int> parse_split(std::string_view text) {
  return split_numbers(text, ',');
}

std::vector<std::pair<std::string_view, std::string_view>> layout_words(std::string_view text) {
  std::vector<std::pair<std::string_view, std::string_view>> words;
  if (text.empty()) return words;
  for (const std::string_view piece : pieces(text, ',')) {
    const std::size_t equals = piece.find('=');
    if (equals == std::string_view::npos) {
      throw SpecError(fmt::format("layout \"{}\": write KEY=VALUE, separated by commas, such as tp=2,pp=4", piece));
    }
    const std::string_view key = piece.substr(0, equals);
    const bool twice = std::ranges::any_of(words, [&](const auto& word) { return word.first == key; });
    if (twice) throw SpecError(fmt::format("layout {}: the key is given twice: keep one", key));
    words.emplace_back(key, piece.substr(equals + 1));
  }
  return words;
}

LayoutRequest parse_layout(std::string_view text) {
  LayoutRequest request;
  for (const auto& [key, value] : layout_words(text)) take(request, key, value);
  return request;
}

std::string to_text(const LayoutRequest& request) {
  std::vector<std::string> words;
  const auto add = [&words](std::string_view key, const auto& field) {
    if (field) words.push_back(fmt::format("{}={}", key, *field));
  };
  add("dp", request.data);
  add("tp", request.tensor);
  add("pp", request.pipeline);
  const auto add_degree = [&add](std::string_view key, const std::optional<int>& degree) {
    if (degree.value_or(1) > 1) add(key, degree);
  };
  add_degree("cp", request.context);
  if (request.context_kind.value_or(ContextKind::kOfStack) != ContextKind::kOfStack)
    words.push_back(fmt::format("cp_kind={}", context_kind_name(*request.context_kind)));
  add_degree("ep", request.expert);
  add_degree("etp", request.expert_tensor);
  add("v", request.chunks);
  add("zero", request.zero);
  if (request.shard.value_or(0) > 0) add("shard", request.shard);
  if (request.sequence_parallel) words.push_back(*request.sequence_parallel ? "sp=1" : "sp=0");
  add("mbs", request.microbatch);
  if (request.recompute) words.push_back(fmt::format("recompute={}", recompute_name(*request.recompute)));
  if (request.recompute_layers.value_or(0) > 0) add("recompute_layers", request.recompute_layers);
  if (request.offload.value_or(Offload{}) != Offload{})
    words.push_back(fmt::format("offload={}", offload_name(*request.offload)));
  add("schedule", request.schedule);
  if (request.group.value_or(0) > 0) add("group", request.group);
  if (request.bucket_mib.value_or(0) > 0) add("bucket_mib", request.bucket_mib);
  if (request.order.value_or(RankOrder::kStagesApart) != RankOrder::kStagesApart)
    words.push_back(fmt::format("order={}", rank_order_name(*request.order)));
  if (request.meshes && !request.meshes->empty())
    words.push_back(fmt::format("meshes={}", value_text(*request.meshes)));
  if (request.split) words.push_back(fmt::format("split={}", fmt::join(*request.split, ":")));
  return fmt::format("{}", fmt::join(words, ","));
}

std::string to_text(const Layout& layout) {
  return to_text(request_of(layout));
}

LayoutRequest request_of(const Layout& layout) {
  LayoutRequest request;
  visit_layout_keys<std::optional>(
      [&](std::string_view, auto answer, auto question) { request.*question = layout.*answer; });
  if (!layout.split.empty()) request.split = layout.split;
  return request;
}

LayoutRequest family_of(const Layout& layout) {
  return {.data = layout.data,
          .tensor = layout.tensor,
          .pipeline = layout.pipeline,
          .context = layout.context,
          .expert = layout.expert,
          .expert_tensor = layout.expert_tensor,
          .microbatch = layout.microbatch};
}

Layout layout_of(const LayoutRequest& request) {
  Layout layout;
  visit_layout_keys<std::optional>([&](std::string_view, auto answer, auto question) {
    if (request.*question) layout.*answer = *(request.*question);
  });
  if (request.split) layout.split = *request.split;
  if (!layout.meshes.empty() && !request.pipeline) layout.pipeline = static_cast<int>(layout.meshes.size());
  return with_equal_meshes_plain(std::move(layout));
}

bool answers_all(const LayoutRequest& request, const LayoutRequest& keys) {
  bool all = !keys.split || request.split;
  visit_layout_keys<std::optional>(
      [&](std::string_view, auto, auto question) { all = all && (!(keys.*question) || request.*question); });
  return all;
}

/// Returns the ranks of a stage that lie side by side, ahead of those of the next stage; 0: all.
static int ranks_together(const Layout& layout) {
  return layout.order == RankOrder::kReplicasApart ? layout.tensor * layout.context : 0;
}

ProcessGrid grid_of(const Layout& layout) {
  return {.tensor = layout.tensor,
          .context = layout.context,
          .expert = layout.expert,
          .expert_tensor = layout.expert_tensor,
          .data = layout.data,
          .pipeline = layout.pipeline,
          .together = ranks_together(layout)};
}

int state_shards(const Layout& layout) {
  return layout.shard > 0 ? layout.shard : layout.data * layout.context;
}

int expert_state_shards(const Layout& layout) {
  return state_shards(layout) * layout.tensor / (layout.expert_tensor * layout.expert);
}

ProcessGrid replica_grid_of(const Layout& layout) {
  const int shards = state_shards(layout);
  return {.tensor = layout.tensor,
          .context = shards,
          .data = layout.data * layout.context / shards,
          .pipeline = layout.pipeline,
          .together = ranks_together(layout)};
}

ProcessGrid expert_grid_of(const Layout& layout) {
  const int ranks = layout.tensor * layout.context * layout.data;
  return {.tensor = layout.expert_tensor,
          .context = layout.expert,
          .data = ranks / (layout.expert_tensor * layout.expert),
          .pipeline = layout.pipeline,
          .together = ranks_together(layout)};
}

ProcessGrid expert_replica_grid_of(const Layout& layout) {
  const int shards = expert_state_shards(layout);
  return {.tensor = layout.expert_tensor * layout.expert,
          .context = shards,
          .data = expert_grid_of(layout).data / shards,
          .pipeline = layout.pipeline,
          .together = ranks_together(layout)};
}

std::int64_t microbatches_of(const TrainingSpec& training, const Layout& layout) {
  const std::int64_t at_once = layout.data * layout.microbatch;
  if (training.global_batch % at_once != 0) {
    throw SpecError(
        fmt::format("a global batch of {} does not divide into dp={} replicas of micro-batches of mbs={}: change "
                    "one of the three",
                    training.global_batch, layout.data, layout.microbatch));
  }
  return training.global_batch / at_once;
}

LayoutRequest layout_from_json(const nlohmann::json& json, const std::string& place) {
  StrictObject object(json, place);
  LayoutRequest request;
  const auto degree = [&](std::string_view key, std::optional<int>& field) {
    if (object.has(key)) field = degree_of(object, key, 1);
  };
  degree("dp", request.data);
  degree("tp", request.tensor);
  degree("pp", request.pipeline);
  degree("cp", request.context);
  degree("ep", request.expert);
  degree("etp", request.expert_tensor);
  degree("v", request.chunks);
  if (object.has("zero")) {
    const std::int64_t zero = object.non_negative_integer("zero");
    if (zero > 3) object.fail("zero", fmt::format("there is no ZeRO stage {}: give 0, 1, 2 or 3", zero));
    request.zero = static_cast<int>(zero);
  }
  if (object.has("shard")) request.shard = degree_of(object, "shard", 0);
  if (object.has("sp")) request.sequence_parallel = object.boolean("sp");
  if (object.has("mbs")) request.microbatch = degree_of(object, "mbs", 1);
  if (object.has("recompute")) {
    request.recompute =
        recompute_from_name(object.choice("recompute", {kRecomputeNames.begin(), kRecomputeNames.end()}));
  }
  if (object.has("recompute_layers")) request.recompute_layers = degree_of(object, "recompute_layers", 0);
  if (object.has("cp_kind"))
    request.context_kind = context_kind_from_name(object.choice("cp_kind", context_kind_names()));
  if (object.has("offload")) request.offload = offload_from_name(object.choice("offload", offload_names()));
  if (object.has("schedule")) request.schedule = schedule_named(object.text("schedule"));
  if (object.has("group")) request.group = degree_of(object, "group", 0);
  if (object.has("bucket_mib")) request.bucket_mib = degree_of(object, "bucket_mib", 0);
  if (object.has("order")) request.order = rank_order_from_name(object.choice("order", rank_order_names()));
  if (object.has("meshes")) request.meshes = meshes_from_text(object.text("meshes"));
  if (object.has("split")) {
    request.split.emplace();
    for (const std::int64_t layers : object.integers("split")) {
      if (layers < 0 || layers > kLargestDegree)
        object.fail("split", fmt::format("{} layers cannot make a stage: give 0 or more to each", layers));
      request.split->push_back(static_cast<int>(layers));
    }
  }
  object.finish();
  return request;
}

nlohmann::ordered_json to_json(const Layout& layout) {
  nlohmann::ordered_json json{{"dp", layout.data},          {"tp", layout.tensor},
                              {"pp", layout.pipeline},      {"v", layout.chunks},
                              {"zero", layout.zero},        {"sp", layout.sequence_parallel},
                              {"mbs", layout.microbatch},   {"recompute", recompute_name(layout.recompute)},
                              {"schedule", layout.schedule}};
  for (const auto& [key, degree] :
       {std::pair("cp", layout.context), std::pair("ep", layout.expert), std::pair("etp", layout.expert_tensor)}) {
    if (degree > 1) json[key] = degree;
  }
  if (layout.context_kind != ContextKind::kOfStack) json["cp_kind"] = context_kind_name(layout.context_kind);
  if (layout.recompute_layers > 0) json["recompute_layers"] = layout.recompute_layers;
  if (layout.shard > 0) json["shard"] = layout.shard;
  if (layout.offload != Offload{}) json["offload"] = offload_name(layout.offload);
  if (layout.group > 0) json["group"] = layout.group;
  if (layout.bucket_mib > 0) json["bucket_mib"] = layout.bucket_mib;
  if (layout.order != RankOrder::kStagesApart) json["order"] = rank_order_name(layout.order);
  if (!layout.meshes.empty()) json["meshes"] = value_text(layout.meshes);
  if (!layout.split.empty()) json["split"] = layout.split;
  return json;
}

}}  // namespace plumb::planner
