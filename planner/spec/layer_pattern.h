#pragma once
// The kinds of a model's layers: what mixes tokens in each, and what feeds forward. A word a layer, with the letters of
// Megatron-Core's hybrid patterns:
//
//   M  a state mixer (Mamba, Mamba-2 or a gated delta net)     -  an MLP
//   *  attention; M* is both beside each other                 E  experts
//
//   layer_pattern("M- ME *-", "m")  // three layers: states and an MLP, states and experts, attention and an MLP

#include <string>
#include <string_view>
#include <vector>

namespace plumb { inline namespace planner {

struct LayerParts {
  bool attention = false;
  bool states = false;
  bool mlp = false;
  bool experts = false;

  friend bool operator==(const LayerParts&, const LayerParts&) = default;
};

/// Returns the parts of each layer. Throws SpecError with the place: no words, an unknown letter, a letter twice, or an
/// MLP beside experts.
std::vector<LayerParts> layer_pattern(std::string_view text, const std::string& place);

/// Returns the shortest text whose repetition gives these layers.
std::string layer_pattern_text(const std::vector<LayerParts>& layers);

}}  // namespace plumb::planner
