#pragma once
// Models, clusters and trainings as the command line names them: a preset, or a file.

#include <string>

#include "planner/spec/cluster_spec.h"
#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/training_spec.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

/// A preset's name, a file in Plumb's form, or a Hugging Face config.json as it is (told by its "model_type"; keys that
/// are ignored are noted on stderr). Throws InputError: no such preset (with the nearest) or file, or a fault in the
/// file.
ModelSpec model_input(const std::string& name_or_path);

/// A preset's name or a file, with ":N" behind it for N devices. Throws as model_input.
ClusterSpec cluster_input(const std::string& name_or_path);

/// A preset's name or a file. Throws as model_input.
StackSpec stack_input(const std::string& name_or_path);

/// What the question says of the training. The sequence is the model's longest unless it is given; precision is the
/// first of bf16, fp16 and fp32 that the device has, unless it is given. Throws SpecError if the batch is not given.
TrainingSpec training_input(const QuestionArguments& question, const ModelSpec& model, const ClusterSpec& cluster);

/// The layout's keys and the split.
LayoutRequest layout_input(const QuestionArguments& question);

}}  // namespace plumb::tools
