#include "executor/parameters/training_state.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "executor/parameters/optimizer_state.h"
#include "executor/spec/run_shape.h"
#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/json_text.h"

namespace plumb { inline namespace executor {
namespace {

using nlohmann::json;

constexpr std::string_view kTitle = "plumb checkpoint ";
constexpr std::size_t kNumberBytes = sizeof(std::uint64_t);

/// Returns Fowler, Noll and Vo's 64-bit hash (FNV-1a).
template <class Bytes>
std::uint64_t hash_of(const Bytes& bytes) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const auto byte : bytes) hash = (hash ^ static_cast<std::uint8_t>(byte)) * 0x100000001B3ULL;
  return hash;
}

std::string number_bytes(std::uint64_t number) {
  std::string bytes(kNumberBytes, '\0');
  std::memcpy(bytes.data(), &number, kNumberBytes);
  return bytes;
}

std::uint64_t number_at(std::string_view bytes, std::size_t first) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data() + first, kNumberBytes);
  return number;
}

constexpr std::array<std::string_view, 5> kOptimizerNames = {"adamw", "adamw-8bit", "sgd", "lion", "adafactor"};

std::string_view precision_text(const std::optional<HalfFormat>& half) {
  if (!half) return "fp32";
  return *half == HalfFormat::kBf16 ? "bf16" : "fp16";
}

json manifest_of(const TrainingState& state) {
  json manifest = {{"steps", state.steps},
                   {"updates", state.updates},
                   {"loss_scale", state.loss_scale.scale},
                   {"good_steps", state.loss_scale.good_steps},
                   {"facts", state.facts},
                   {"layers", json::array()}};
  for (const std::vector<SavedParameter>& layer : state.parameters) {
    json parameters = json::array();
    for (const SavedParameter& parameter : layer) {
      json fields = json::array();
      for (const SavedField& field : parameter.fields)
        fields.push_back({{"name", field.name}, {"bytes", field.bytes.size()}});
      parameters.push_back({{"name", parameter.name},
                            {"shape", parameter.shape},
                            {"elements", parameter.weights.size()},
                            {"fields", std::move(fields)}});
    }
    manifest["layers"].push_back(std::move(parameters));
  }
  return manifest;
}

void append(std::string& bytes, const void* values, std::size_t count) {
  bytes.append(static_cast<const char*>(values), count);
}

/// Reads values one after the other.
class ValueReader {
 public:
  explicit ValueReader(std::string_view values) : values_(values) {}

  void read(void* into, std::size_t count) {
    if (count > values_.size()) throw std::out_of_range("values");
    if (count > 0) std::memcpy(into, values_.data(), count);
    values_.remove_prefix(count);
  }
  bool at_end() const { return values_.empty(); }

 private:
  std::string_view values_;
};

SavedParameter read_parameter(const json& entry, ValueReader& values) {
  SavedParameter parameter{.name = entry.at("name").get<std::string>(),
                           .shape = entry.at("shape").get<std::vector<std::int64_t>>()};
  parameter.weights.resize(entry.at("elements").get<std::size_t>());
  values.read(parameter.weights.data(), parameter.weights.size() * sizeof(float));
  for (const json& field : entry.at("fields")) {
    SavedField& saved = parameter.fields.emplace_back(SavedField{.name = field.at("name").get<std::string>()});
    saved.bytes.resize(field.at("bytes").get<std::size_t>());
    values.read(saved.bytes.data(), saved.bytes.size());
  }
  return parameter;
}

TrainingState read_state(const json& manifest, std::string_view value_bytes) {
  ValueReader values(value_bytes);
  TrainingState state{.facts = manifest.at("facts").get<std::vector<std::pair<std::string, std::string>>>(),
                      .steps = manifest.at("steps").get<std::int64_t>(),
                      .updates = manifest.at("updates").get<std::int64_t>(),
                      .loss_scale = {.scale = manifest.at("loss_scale").get<double>(),
                                     .good_steps = manifest.at("good_steps").get<int>()}};
  for (const json& layer : manifest.at("layers")) {
    state.parameters.emplace_back();
    for (const json& parameter : layer) state.parameters.back().push_back(read_parameter(parameter, values));
  }
  if (!values.at_end()) throw std::out_of_range("values");
  return state;
}

std::string text_of(const SavedParameter& parameter) {
  return fmt::format("{} [{}]", parameter.name, fmt::join(parameter.shape, ", "));
}

}  // namespace

TrainingState room_for_state(const RunSpec& spec) {
  const std::int64_t samples = spec.grid.data * spec.schedule.microbatches * spec.microbatch;
  TrainingState state;
  state.facts = {{"optimizer", std::string(kOptimizerNames[spec.optimizer.index()])},
                 {"precision", std::string(precision_text(spec.half))},
                 {"seed", fmt::format("{}", spec.seed)},
                 {"batch", fmt::format("{} samples of {} tokens", samples, spec.sequence)},
                 {"text", fmt::format("of {} bytes (hash {:016x})", spec.text.size(), hash_of(spec.text))}};
  const std::vector<int> first_layer = first_layers(spec);
  for (std::size_t stage = 0; stage < first_layer.size(); ++stage)
    for (std::size_t i = 0; i < spec.stage_layers[stage].size(); ++i) {
      const std::size_t number = static_cast<std::size_t>(first_layer[stage]) + i;
      state.parameters.resize(std::max(state.parameters.size(), number + 1));
      if (!state.parameters[number].empty()) continue;  // another copy of the stage has made it
      for (const ParameterTensor& tensor : layer_parameters(spec.stage_layers[stage][i])) {
        SavedParameter parameter{.name = fmt::format("{}.{}", number, tensor.name), .shape = tensor.shape};
        parameter.weights.resize(static_cast<std::size_t>(element_count(tensor)));
        for (const OptimizerField& field : optimizer_fields(spec.optimizer, tensor, element_count(tensor)))
          parameter.fields.push_back(
              {std::string(field.name), std::vector<std::byte>(static_cast<std::size_t>(field.bytes))});
        state.parameters[number].push_back(std::move(parameter));
      }
    }
  return state;
}

void require_same_training(const TrainingState& saved, const TrainingState& wanted, const std::string& place) {
  for (std::size_t layer = 0; layer < std::max(saved.parameters.size(), wanted.parameters.size()); ++layer) {
    const auto names = [layer](const TrainingState& state) {
      std::vector<std::string> texts;
      if (layer < state.parameters.size())
        for (const SavedParameter& parameter : state.parameters[layer]) texts.push_back(text_of(parameter));
      return texts.empty() ? "nothing" : fmt::format("{}", fmt::join(texts, ", "));
    };
    if (names(saved) != names(wanted))
      throw InputError(
          fmt::format("{} is of another model: in layer {} it has {}, and this run {}; name the checkpoint of this "
                      "model, or start without --resume",
                      place, layer, names(saved), names(wanted)));
  }
  for (const auto& [what, value] : wanted.facts) {
    const auto found = std::ranges::find(saved.facts, what, &std::pair<std::string, std::string>::first);
    const std::string was = found == saved.facts.end() ? "unknown" : found->second;
    if (was != value)
      throw InputError(
          fmt::format("{} was made with another {}, {}, and this run's is {}: give the same, or start "
                      "without --resume",
                      place, what, was, value));
  }
}

std::string to_bytes(const TrainingState& state) {
  const std::string manifest = json_line(manifest_of(state));
  std::string bytes = fmt::format("{}{}\n", kTitle, newest_format(FileForm::kCheckpoint));
  const std::size_t total_at = bytes.size();
  bytes += number_bytes(0) + number_bytes(manifest.size()) + manifest;
  for (const std::vector<SavedParameter>& layer : state.parameters)
    for (const SavedParameter& parameter : layer) {
      append(bytes, parameter.weights.data(), parameter.weights.size() * sizeof(float));
      for (const SavedField& field : parameter.fields) append(bytes, field.bytes.data(), field.bytes.size());
    }
  bytes.replace(total_at, kNumberBytes, number_bytes(bytes.size() + kNumberBytes));
  return bytes + number_bytes(hash_of(bytes));
}

TrainingState training_state_from_bytes(std::string_view bytes, const std::string& place) {
  const auto refuse = [&](const std::string& why) {
    throw InputError(fmt::format("{} {}: name another checkpoint, or start without --resume", place, why));
  };
  if (!bytes.starts_with(kTitle)) refuse("is no checkpoint of Plumb");
  const std::size_t line_end = bytes.find('\n');
  if (line_end != std::string_view::npos)
    checked_format(FileForm::kCheckpoint, bytes.substr(kTitle.size(), line_end - kTitle.size()), place);
  const std::size_t head = line_end + 1;
  if (line_end == std::string_view::npos || bytes.size() < head + 3 * kNumberBytes) refuse("is cut short");
  const std::uint64_t total = number_at(bytes, head), manifest_bytes = number_at(bytes, head + kNumberBytes);
  if (bytes.size() != total) refuse(fmt::format("is cut short: it has {} bytes of {}", bytes.size(), total));
  const std::size_t end = bytes.size() - kNumberBytes, first = head + 2 * kNumberBytes;
  if (hash_of(bytes.substr(0, end)) != number_at(bytes, end) || manifest_bytes > end - first)
    refuse("is damaged: its checksum is wrong");
  try {
    const json manifest = json::parse(bytes.substr(first, manifest_bytes));
    return read_state(manifest, bytes.substr(first + manifest_bytes, end - first - manifest_bytes));
  } catch (const json::exception&) {
    refuse("has a manifest that cannot be read");
  } catch (const std::out_of_range&) {
    refuse("has other values than its manifest says");
  }
  return {};
}

}}  // namespace plumb::executor
