#pragma once
// Dropout of the rows that a rank has, whose masks no layout changes.

#include "executor/layers/device/step_call.h"

namespace plumb { inline namespace executor {

/// y = residual (null: zeros) + dropout of x, for own rows [R, columns]; they may begin and end inside a sample. The
/// step's `mask` says which dropout of the layer it is.
void drop_rows(const StepCall& of, std::byte* y, const std::byte* x, const std::byte* residual, std::int64_t columns,
               double probability);

}}  // namespace plumb::executor
