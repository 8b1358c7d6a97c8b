#pragma once
// Requires conditions of the user's input.

#include <string>

#include "schedules/error.h"

namespace plumb { inline namespace executor {

/// Throws SpecError with the sentence `otherwise` unless the condition holds.
inline void require(bool holds, const std::string& otherwise) {
  if (!holds) throw SpecError(otherwise);
}

}}  // namespace plumb::executor
