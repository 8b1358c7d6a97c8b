#pragma once
// A condition on what a user asked for.

#include <string>

#include "schedules/error.h"

namespace plumb { inline namespace executor {

/// Throws SpecError with the sentence `otherwise` unless the condition holds.
inline void require(bool holds, const std::string& otherwise) {
  if (!holds) throw SpecError(otherwise);
}

}}  // namespace plumb::executor
