#pragma once
// Maps a published row to a question to the planner: model, cluster, training and layout, or the reason why there is
// none.
//
//   ScoreLibrary library{.mappings = ..., .clusters = {{"a100", json}}, .stacks = {{"megatron-lm-2021", json}}};
//   MappedRow mapped = map_row(library, read_by(mapping, row).row, &mapping);
//   if (mapped.questions.size() == 1) predict(...)
//
// The fields are those of the published row schema. A mapping (score/source_mapping.h) may add fields that no source
// prints:
//   stack                the framework that trains
//   framework_described  true: the row names a framework, and `stack` describes it
//   stack_with           figures of the stack that this row's own flags change: {"attention": "unfused"}
//   gradient_precision, optimizer, split, group
//   order_memory         an order searched for the row's own times, in which a rank holds the activations of so many
//                        times p micro-batches (Qi et al. 2024)
//   unsynchronised_step  true: ranks begin the next step as soon as their own optimizer has run, so that a step lasts
//                        as long as the busiest rank's
//   model.KEY            any key of spec/model_spec.h
//   search               {"mbs": [1, 2, 4], "vpp": "1..48"}: values of fields that are not printed, a list or a range; the
//                        fastest prediction counts. Where the stack rebuilds any number of layers
//                        (can.recompute_layers), "full" is of the fewest that fit

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/evaluate/error_bar.h"
#include "planner/score/score_library.h"
#include "planner/spec/cluster_spec.h"
#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/training_spec.h"

namespace plumb { inline namespace planner {

struct RowQuestion {
  ModelSpec model;
  ClusterSpec cluster;
  TrainingSpec training;
  Layout layout;
  std::optional<double> order_memory;
  bool unsynchronised_step = false;
  bool open_recompute = false;  ///< what is rebuilt is not known: it may be any number of a stage's layers
  FrameworkKnown framework = FrameworkKnown::kNamed;
};

struct MappedRow {
  std::vector<RowQuestion> questions;    ///< one, or those among which `search` chooses; empty: the row cannot be asked
  std::string reason;                    ///< reason why there is no question
  std::vector<std::string> assumptions;  ///< fields that the row does not print and no mapping fills
};

/// Returns the questions of a row that its mapping has read already; `mapping` is null where its source has none.
/// Throws SpecError if the library is at fault: an override of a figure that no preset has, or a cluster or stack that
/// a mapping names and that is not there.
MappedRow map_row(const ScoreLibrary& library, const nlohmann::json& row, const SourceMapping* mapping);

}}  // namespace plumb::planner
