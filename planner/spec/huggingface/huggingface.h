#pragma once
// A Hugging Face config.json, exactly as a repository has it.
//
//   ImportedModel imported = model_from_huggingface(text, "config.json");
//   imported.model.layers; imported.ignored_keys;   // the verb prints the keys once
//
// The families are in families.h; each reader says what it leaves out. A key that a file leaves out takes the default
// of the family's configuration class in the transformers library.

#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/model_spec.h"

namespace plumb { inline namespace planner {

struct ImportedModel {
  ModelSpec model;
  std::vector<std::string> ignored_keys;  ///< ascending; these keys do not bear on sizes or costs
  std::string note;                       ///< parts of the repository's model that `model` leaves out; empty: none
};

/// Reads the file's text. Throws SpecError if the text is no JSON object, the model_type is missing or none of the
/// families (they are named), a required key is missing or no positive number, or a value asks for what Plumb does not
/// price (an activation other than the family's, biases on the attention alone, experts in some of the layers only).
ImportedModel model_from_huggingface(std::string_view text, const std::string& file);

}}  // namespace plumb::planner
