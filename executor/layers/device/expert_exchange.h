#pragma once
// The exchange of rows between the tokens of an expert group's ranks and their experts
// (executor/layers/host/expert_exchange.h). The blocks have room for whatever the router picks, so that no size depends
// on it (kernels/simt/experts/expert_blocks.h).

#include <cstdint>

#include "executor/layers/device/expert_routes.h"

namespace plumb { inline namespace executor {

class DeviceExpertExchange {
 public:
  /// `program` is that of a block with experts.
  explicit DeviceExpertExchange(const PlacedProgram& program);

  /// Enqueues an exchange of ExchangeGroup::kExpert with the kernels around it, which place rows in blocks and take
  /// them out.
  void enqueue(const StepCall& of) const;

 private:
  void share_routes(const StepCall& of) const;
  void exchange_rows(const StepCall& of) const;
  void exchange_weights(const StepCall& of) const;

  ExpertRoutes routes_;
  std::int64_t picked_;  // T k
  std::int64_t hidden_;
  ExpertBlocks blocks_;
};

}}  // namespace plumb::executor
