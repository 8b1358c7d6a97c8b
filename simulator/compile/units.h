#pragma once
// A unit is one stage's work on one slice of one micro-batch; units are numbered densely, for flat arrays.

#include <cstddef>

#include "schedules/action.h"

namespace plumb { inline namespace simulator {

struct Units {
  int stages = 0;
  int microbatches = 0;
  int parts = 1;  ///< sequence slices

  std::size_t count() const { return of(stages, 0, 0); }
  std::size_t of(int stage, int microbatch, int part) const {
    return (static_cast<std::size_t>(stage) * static_cast<std::size_t>(microbatches) +
            static_cast<std::size_t>(microbatch)) *
               static_cast<std::size_t>(parts) +
           static_cast<std::size_t>(part);
  }
  std::size_t of(const Action& action) const { return of(action.stage, action.microbatch, action.part); }
};

}}  // namespace plumb::simulator
