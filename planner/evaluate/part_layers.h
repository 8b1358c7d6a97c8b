#pragma once
// The kinds of the layers that each model part of a layout holds.

#include <cstddef>
#include <span>
#include <vector>

#include "planner/price/pricing.h"
#include "planner/spec/layout.h"

namespace plumb { inline namespace planner {

class PartLayers {
 public:
  /// `pricing` must outlive it. `split` has the layers of each part.
  PartLayers(const Pricing& pricing, const Layout& layout, const std::vector<int>& split);

  /// Returns the kinds of a part's layers in forward order. Where only some layers are rebuilt, those that are not are of
  /// kinds behind all of the model's (stage_passes.h).
  std::span<const int> of(int part) const { return kinds().subspan(first_[part], first_[part + 1] - first_[part]); }

 private:
  std::span<const int> kinds() const { return with_kept_.empty() ? of_model_ : with_kept_; }

  std::span<const int> of_model_;   // [layer]
  std::vector<int> with_kept_;      // [layer] where only some layers are rebuilt
  std::vector<std::size_t> first_;  // [part] its first layer; one entry more stands for the end
};

}}  // namespace plumb::planner
