#pragma once
// One layer on the CPU: forward, input gradient and weight gradient of one micro-batch (slice). It interprets the
// layer's program, whose steps are kernels and exchanges; tensors take memory of the rank's pool when they are first
// written, and give it back behind their last use. A layer itself is constant: weights, gradients and saved tensors
// come with the call.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/layers/host/host_step.h"
#include "executor/layers/model_end.h"
#include "executor/layers/parameter_places.h"

namespace plumb { inline namespace executor {

class CpuLayer {
 public:
  /// `layer` is whole; works: [slice] the work of the layer's groups together.
  CpuLayer(const Layer& layer, const std::vector<LayerWork>& works, const LayerSeat& seat = {});

  /// Returns what a micro-batch's slice holds; the layer must outlive it.
  std::unique_ptr<LayerSaved> make_saved(int slice = 0) const {
    return std::make_unique<LayerSaved>(programs_[static_cast<std::size_t>(slice)]);
  }

  /// input: [input_elements], empty for a layer that makes its own. Returns [output_elements], or an empty tensor for a
  /// layer that ends the model.
  Tensor forward(const LayerCall& call, Tensor input, LayerSaved& saved) const;

  /// output_gradient: [output_elements]. Returns the input's gradient [input_elements]. Adds the gradients of norms to
  /// the layer's gradients.
  Tensor input_grad(const LayerCall& call, Tensor output_gradient, LayerSaved& saved) const;

  /// Comes after input_grad. The saved tensors are not needed any more afterwards.
  void weight_grad(const LayerCall& call, LayerSaved& saved) const;

  /// Computes the tensors that LayerSaved::cheap() lists again from the other saved tensors: outputs of norms and
  /// activation functions (selective recomputation).
  void rebuild_cheap(const LayerCall& call, LayerSaved& saved) const;

  /// Returns the elements of context.scratch that the kernels need.
  std::int64_t scratch_elements() const;

  /// Returns the layer's copy of the token table that both ends of a tied model use; count 0 if it has none for that
  /// end.
  ElementRange tied_table(ModelEnd end) const;

 private:
  void run(Pass pass, const LayerCall& call, LayerSaved& saved) const;
  void run_step(const LayerStep& step, const LayerCall& call, LayerSaved& saved) const;
  void perform(const HostStep& of) const;
  void perform_exchange(const HostStep& of) const;
  void rotate(const HostStep& of) const;

  std::vector<HostProgram> programs_;  // [slice]
  LayerSeat seat_;
  std::vector<float> rotary_;  // rotary_table [s, rotary_size], or its rows of the context rank's tokens, by slice
};

}}  // namespace plumb::executor
