#pragma once
// Models, clusters and trainings are named on the command line by a preset or by a file.

#include <string>

#include "planner/spec/assumed_stack.h"
#include "planner/spec/cluster_spec.h"
#include "planner/spec/layout_space.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/training_spec.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

/// Returns true for what is a file rather than a preset's name: it has a folder or a known ending.
bool names_file(const std::string& name);

/// Returns the model of a preset's name, of a file in Plumb's form, of a Hugging Face config.json (which has a
/// "model_type"; the keys that are ignored are noted on stderr), of a folder with one, or of an ONNX file. Throws
/// InputError if there is no such preset (with the
/// nearest name) or no such file, or the file has a fault.
ModelSpec model_input(const std::string& name_or_path);

/// Returns the cluster of a preset's name or of a file, with N devices if ":N" stands behind it; or of several with plus
/// signs between them, whose link may stand behind the last: "h100:16+a100:8@10" for 10 GB/s, "@10/5000" with 5000 us.
/// Throws as model_input, UsageError if the link cannot be read, and as joined_sites.
ClusterSpec cluster_input(const std::string& name_or_path);

/// Returns the stack of a preset's name or of a file. Throws as model_input.
StackSpec stack_input(const std::string& name_or_path);

/// Returns the stacks of which one is assumed of each layout: all presets, or none where the question names a stack.
StackLibrary assumable_stacks(const QuestionArguments& question);

/// Returns the training of a question. A sequence that is not given is the model's; a precision that is not given is
/// the first of bf16, fp16 and fp32 that the device has. Throws UsageError if the batch is not given or a number is
/// above its limit, and SpecError if neither question nor model says how long sequences are.
TrainingSpec training_input(const QuestionArguments& question, const ModelSpec& model, const ClusterSpec& cluster);

/// Returns the space of --layout, --split and --space. --layout begins with a file's name or is a list of keys. Throws
/// UsageError if one cannot be read or both give a split, and as parse_layout_space_file does.
LayoutSpace space_input(const QuestionArguments& question);

/// Returns the keys of a question about one layout. Throws UsageError where one has several values.
LayoutRequest layout_input(const QuestionArguments& question);

}}  // namespace plumb::tools
