#pragma once
// The steps of a mixture of experts on a device (kernels/layer/emit/experts_part.cpp). Rows of picks are ordered by
// their experts. There is room for the most rows that there can be (T k, or in an expert group those of all its
// ranks), so the host need not know how many picks an expert gets, or how many were dropped. Each slice keeps its loads
// with the sequence: later slices find there how much of an expert's capacity is taken, and the load-balancing loss
// sums up all of them. Symbols: T tokens, k picks of a token, h hidden, E experts, b sequences.

#include <cstdint>

#include "executor/layers/device/expert_routes.h"

namespace plumb { inline namespace executor {

/// True for the kernels that this file enqueues.
bool is_of_experts(const StepCall& of);

class ExpertSteps {
 public:
  /// `program` is that of a block with experts. Adds the bytes that slices keep of sequences to `bytes`.
  ExpertSteps(const PlacedProgram& program, DeviceLayerBytes& bytes);

  /// Enqueues a kernel for which is_of_experts() holds.
  void enqueue(const StepCall& of) const;
  /// Enqueues the gather of the picks of whole sequences, and places this rank's.
  void share_picks(const StepCall& of) const;

 private:
  std::int64_t picked() const { return routing_.tokens() * routing_.picks; }    // T k
  std::int64_t lists() const { return routing_.sequences * routing_.experts; }  // b E
  bool is_sliced() const { return slices_ > 1; }
  std::int32_t* slice_loads(const StepCall& of, int slice) const;
  DeviceRoutes routes_of_slice(const StepCall& of) const;

  void product_of_router(const StepCall& of) const;
  RouterRule rule(const StepCall& of) const;
  void route(const StepCall& of) const;
  void route_backward(const StepCall& of) const;
  void copy_rows(const StepCall& of) const;
  void product_of_experts(const StepCall& of) const;
  void add_bias(const StepCall& of) const;
  void weigh_picks(const StepCall& of) const;
  ExpertRows rows_of_experts(const StepCall& of, std::size_t bounds) const;

  TransformerLayer layer_;
  ExpertRoutes routes_;
  PickRouting routing_;  // of the tokens on this rank; the capacity is that of whole sequences
  SharedPicks shared_picks_;
  std::int64_t whole_sequence_;  // s
  int slices_, slice_;           // slices of each sequence, and the number of this one
  // [slices, b, E] picks of the slices: offset in bytes among what the layer keeps of sequences.
  std::int64_t loads_at_ = 0;
};

}}  // namespace plumb::executor
