#pragma once
// The training of a published row: batch, sequence, precision, optimizer, and the framework that trains.

#include "planner/score/row_reader.h"
#include "planner/spec/cluster_spec.h"
#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/training_spec.h"

namespace plumb { inline namespace planner {

/// Returns the row's training. Throws Unmapped if the row does not tell it, and SpecError if the library is at fault.
TrainingSpec training_of(RowReader& reader, const ModelSpec& model, const ClusterSpec& cluster, const Layout& layout);

}}  // namespace plumb::planner
