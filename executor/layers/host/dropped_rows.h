#pragma once
// Dropout of the rows that a rank has, whose masks no layout changes.

#include "executor/layers/host/host_step.h"

namespace plumb { inline namespace executor {

/// Applies the dropout of a kDropout step to own rows, which may begin and end inside a sample.
void drop_rows(const HostStep& of);

}}  // namespace plumb::executor
