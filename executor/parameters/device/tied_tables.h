#pragma once
// The ends of a tied table (one table for embedding and head) that a stage has: where their gradients lie, and how all
// of an end's gradients come together before the ends are summed.

#include <array>
#include <cstdint>

#include "executor/layers/model_end.h"
#include "executor/parameters/device/parameter_block.h"

namespace plumb { inline namespace executor {

class TiedTables {
 public:
  TiedTables() = default;
  /// layers: this rank's share of the stage's. A first layer that embeds tokens, and a last one that is a head, are
  /// ends.
  TiedTables(const std::vector<Layer>& layers, const ParameterBlock& common);

  /// Elements of an end in the block of common parameters; count 0 where the stage does not have it.
  ElementRange table(ModelEnd end) const { return tables_[static_cast<std::size_t>(end)]; }

  /// Bytes of the whole gradients that allocate() takes, of tables of which the block has a share.
  std::int64_t buffer_bytes(const ParameterBlock& common) const;
  void allocate(DeviceMachine& machine, const ParameterBlock& common);

  /// Address of an end's gradient [count of table()], once it is gathered.
  float* gradients(const ParameterBlock& common, ModelEnd end) const;
  /// Gathers an end's gradient from the stage's copies.
  void gather(CallRecorder& recorder, const ParameterBlock& common, ModelEnd end) const;
  /// Takes the own share of the summed gradient back into the block.
  void finish(DeviceKernels& kernels, const ParameterBlock& common, ModelEnd end) const;

 private:
  std::array<ElementRange, 2> tables_;  // [end]
  std::array<float*, 2> whole_ = {};    // [end] gradients of a table of which the block has a share
};

}}  // namespace plumb::executor
