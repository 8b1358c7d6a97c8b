// The input layer on the CPU: samples of real numbers from the training data.

#include "executor/cpu/layers/layer_kinds.h"

namespace plumb { inline namespace executor {
namespace {

struct InputSaved : LayerSaved {
  std::vector<Tensor*> tensors() override { return {}; }
  Tensor* kept_input() override { return nullptr; }
};

class CpuInput : public CpuLayer {
 public:
  explicit CpuInput(const InputLayer& layer) : layer_(layer) {}

  std::unique_ptr<LayerSaved> make_saved() const override { return std::make_unique<InputSaved>(); }

  Tensor forward(const LayerCall& call, Tensor, LayerSaved&) const override {
    Tensor output = call.context.pool->take(output_elements(layer_, call.context.work));
    fill_samples(output.values(), *call.context.samples, call.place);
    return output;
  }

  Tensor input_grad(const LayerCall&, Tensor, LayerSaved&) const override { return {}; }
  void weight_grad(const LayerCall&, LayerSaved&) const override {}

 private:
  InputLayer layer_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_cpu_input(const InputLayer& layer) {
  return std::make_unique<CpuInput>(layer);
}

}}  // namespace plumb::executor
