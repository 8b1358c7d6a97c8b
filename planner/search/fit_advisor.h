#pragma once
// The advice for a layout that does not fit: the nearest change with which it does.
//
//   FitAdvisor(pricing, space).nearest_change(layout);   // "recompute=full fits"

#include <optional>
#include <string>
#include <utility>

#include "planner/price/pricing.h"
#include "planner/search/held_bytes.h"
#include "planner/spec/layout.h"
#include "planner/spec/layout_space.h"

namespace plumb { inline namespace planner {

/// Keeps what it has worked out; no answer depends on earlier questions.
class FitAdvisor {
 public:
  /// `pricing` must outlive it. No layout outside of the space is advised.
  FitAdvisor(Pricing& pricing, LayoutSpace space) : pricing_(pricing), space_(std::move(space)), held_(pricing) {}

  /// Returns the nearest change, as a clause. It is one key if possible, else the fewest of two or three: sequence
  /// parallelism, sharding, recomputation, smaller micro-batches, one chunk a rank, tensor or pipeline ranks in place of
  /// replicas. If these do not help it is another layout, and failing that the device memory or the number of devices
  /// that would suffice.
  std::string nearest_change(const Layout& layout);

 private:
  bool fits(const Layout& layout);
  std::optional<std::string> changes_that_fit(const Layout& layout, const std::string& before, int count);
  std::string other_layout_or_cluster();

  Pricing& pricing_;
  LayoutSpace space_;
  HeldBytes held_;
  std::optional<std::string> other_;
};

}}  // namespace plumb::planner
