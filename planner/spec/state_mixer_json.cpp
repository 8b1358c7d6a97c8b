#include "planner/spec/state_mixer_json.h"

#include <cstdint>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plumb { inline namespace planner {
namespace {

constexpr const char* kMamba2 = "mamba2";
constexpr const char* kMamba = "mamba";
constexpr const char* kDeltaNet = "delta_net";

std::int64_t mixer_size(StrictObject& object, std::string_view key) {
  constexpr std::int64_t kLargest = 1 << 20;
  const std::int64_t size = object.positive_integer(key);
  if (size > kLargest) object.fail(key, fmt::format("{} is out of range: give at most {}", size, kLargest));
  return size;
}
std::int64_t mixer_size_or(StrictObject& object, std::string_view key, std::int64_t fallback) {
  return object.has(key) ? mixer_size(object, key) : fallback;
}

Mamba2Mixer mamba2_of(StrictObject& object) {
  Mamba2Mixer mixer;
  mixer.heads = mixer_size(object, "heads");
  mixer.head_size = mixer_size(object, "head_size");
  mixer.state_size = mixer_size(object, "state_size");
  mixer.groups = mixer_size_or(object, "groups", mixer.groups);
  if (mixer.heads % mixer.groups != 0) {
    object.fail("groups", fmt::format("{} does not divide the {} heads: each group of heads shares B and C",
                                      mixer.groups, mixer.heads));
  }
  mixer.taps = mixer_size_or(object, "taps", mixer.taps);
  mixer.chunk = mixer_size_or(object, "chunk", mixer.chunk);
  mixer.linear_bias = object.boolean_or("linear_bias", false);
  mixer.convolution_bias = object.boolean_or("convolution_bias", true);
  mixer.gated_norm = object.boolean_or("gated_norm", true);
  return mixer;
}

MambaMixer mamba_of(StrictObject& object) {
  MambaMixer mixer;
  mixer.channels = mixer_size(object, "channels");
  mixer.state_size = mixer_size(object, "state_size");
  mixer.step_rank = mixer_size(object, "step_rank");
  mixer.taps = mixer_size_or(object, "taps", mixer.taps);
  mixer.linear_bias = object.boolean_or("linear_bias", false);
  mixer.convolution_bias = object.boolean_or("convolution_bias", true);
  mixer.inner_norms = object.boolean_or("inner_norms", false);
  return mixer;
}

DeltaNetMixer delta_net_of(StrictObject& object) {
  DeltaNetMixer mixer;
  mixer.key_heads = mixer_size(object, "key_heads");
  mixer.value_heads = mixer_size(object, "value_heads");
  if (mixer.value_heads % mixer.key_heads != 0) {
    object.fail("key_heads", fmt::format("{} does not divide the {} value heads: each key head serves as many",
                                         mixer.key_heads, mixer.value_heads));
  }
  mixer.key_size = mixer_size(object, "key_size");
  mixer.value_size = mixer_size(object, "value_size");
  mixer.taps = mixer_size_or(object, "taps", mixer.taps);
  mixer.chunk = mixer_size_or(object, "chunk", mixer.chunk);
  return mixer;
}

nlohmann::ordered_json json_of(const Mamba2Mixer& mixer) {
  nlohmann::ordered_json json{{"heads", mixer.heads},
                              {"head_size", mixer.head_size},
                              {"state_size", mixer.state_size},
                              {"groups", mixer.groups},
                              {"taps", mixer.taps},
                              {"chunk", mixer.chunk},
                              {"linear_bias", mixer.linear_bias},
                              {"convolution_bias", mixer.convolution_bias}};
  if (!mixer.gated_norm) json["gated_norm"] = false;
  return json;
}

nlohmann::ordered_json json_of(const MambaMixer& mixer) {
  return {{"channels", mixer.channels},       {"state_size", mixer.state_size},
          {"step_rank", mixer.step_rank},     {"taps", mixer.taps},
          {"linear_bias", mixer.linear_bias}, {"convolution_bias", mixer.convolution_bias},
          {"inner_norms", mixer.inner_norms}};
}

nlohmann::ordered_json json_of(const DeltaNetMixer& mixer) {
  return {{"key_heads", mixer.key_heads}, {"value_heads", mixer.value_heads},
          {"key_size", mixer.key_size},   {"value_size", mixer.value_size},
          {"taps", mixer.taps},           {"chunk", mixer.chunk}};
}

}  // namespace

StateMixer state_mixer_from_json(const nlohmann::json& model, StrictObject& object, const std::string& place) {
  StateMixer mixer;
  for (const char* key : {kMamba2, kMamba, kDeltaNet}) {
    if (!object.has(key)) continue;
    if (mixer.index() > 0) object.fail(key, "a model has one kind of state mixer: leave the other out");
    StrictObject sizes(model.at(key), place + ", " + key);
    if (key == kMamba2)
      mixer = mamba2_of(sizes);
    else if (key == kMamba)
      mixer = mamba_of(sizes);
    else
      mixer = delta_net_of(sizes);
    sizes.finish();
  }
  return mixer;
}

void add_state_mixer(nlohmann::ordered_json& model, const StateMixer& mixer) {
  if (const auto* mamba2 = std::get_if<Mamba2Mixer>(&mixer)) model[kMamba2] = json_of(*mamba2);
  if (const auto* mamba = std::get_if<MambaMixer>(&mixer)) model[kMamba] = json_of(*mamba);
  if (const auto* delta_net = std::get_if<DeltaNetMixer>(&mixer)) model[kDeltaNet] = json_of(*delta_net);
}

}}  // namespace plumb::planner
