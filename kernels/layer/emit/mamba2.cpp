// Emits Mamba-2's block (Dao & Gu 2024, figure 6). A tensor rank has whole groups with their heads (section 8.1), so that
// the norm needs no exchange. The mixer's projection [T, z x B C steps] holds its own gradient after the input gradient:
// each step of the backward turns the columns that it has read for the last time into gradients.

#include "kernels/layer/emit/program_builder.h"
#include "kernels/layer/state_space_scratch.h"

namespace plumb { inline namespace kernels {
namespace {

class Mamba2Block {
 public:
  Mamba2Block(ProgramBuilder& builder, const Mamba2Layer& layer)
      : builder_(builder),
        own_(rank_share(layer, builder.work().tensor_parallel)),
        norm_(builder.norm("norm", NormKind::kRmsNorm, layer.hidden)),
        in_(builder.product("mixer_in", own_.projected(), layer.hidden, 0, layer.linear_bias, projected())),
        taps_(builder.parameter("convolution.weight", {own_.convolved(), layer.taps}, 0, convolved())),
        taps_bias_(layer.convolution_bias ? builder.parameter("convolution.bias", {own_.convolved()}, 0, convolved())
                                          : -1),
        decay_(of_heads("decay_log", InitialValues::kDecayLog)),
        step_bias_(of_heads("step.bias", InitialValues::kStepBias)),
        skip_(of_heads("skip", InitialValues::kOnes)),
        gain_(builder.parameter("mixer_norm.gain", {own_.inner()}, 0, {inner()})),
        out_(builder.product("mixer_out", layer.hidden, own_.inner(), 1, layer.linear_bias, {inner()})) {
    builder.parameter_at(gain_).initial = InitialValues::kOnes;
  }

  void forward() {
    const std::int64_t tokens = builder_.tokens();
    builder_.begin(Pass::kForward);
    input_ = builder_.input(builder_.own_rows(), own_.hidden);
    normed_ = builder_.tensor("norm output", builder_.own_rows(), own_.hidden);
    builder_.norm_forward(norm_, input_, normed_);
    projected_ = builder_.tensor("projection", tokens, own_.projected());
    builder_.multiply(in_, builder_.gathered(normed_), projected_);
    builder_.add_bias(in_, projected_);
    convolved_ = builder_.tensor("convolution output", tokens, own_.convolved());
    LayerStep& convolution = kernel("convolution", KernelKind::kCausalConvolutionForward, {projected_}, {convolved_});
    convolution.parameters = of_convolution();
    convolution.cheap = true;
    output_ = builder_.tensor("state-space output", tokens, own_.inner());
    kernel("state space", KernelKind::kStateSpaceForward, {convolved_, projected_}, with_scratch({output_}, false))
        .parameters = of_states();
    deviations_ = builder_.tensor("mixer_norm deviations", tokens, own_.groups, StoredType::kSingle);
    gated_ = builder_.tensor("mixer_norm output", tokens, own_.inner());
    LayerStep& norm = kernel("mixer_norm", KernelKind::kGatedNormForward, {output_, projected_}, {gated_, deviations_});
    norm.parameters = {gain_};
    norm.cheap = true;
    const int branch = builder_.temporary(Room::kRows, "branch", tokens, own_.hidden);
    builder_.multiply(out_, gated_, branch);
    const int made = builder_.summed(branch);
    builder_.add_bias(out_, made);
    const int sum = builder_.on_device() ? builder_.tensor("output", builder_.own_rows(), own_.hidden)
                                         : builder_.in_place_of("output", made);
    builder_.kernel("output", kernel_call(KernelKind::kResidualAdd, {builder_.own_rows(), own_.hidden}), {input_, made},
                    {sum});
    builder_.program().output = sum;
  }

  void input_grad() {
    builder_.begin(Pass::kInputGrad);
    output_gradient_ = builder_.output_gradient(builder_.own_rows(), own_.hidden);
    const int gradient = builder_.tensor("mixer_norm output gradient", builder_.tokens(), own_.inner());
    builder_.input_gradient(out_, builder_.gathered(output_gradient_), gradient);
    projected_gradient_ = builder_.in_place_of("projection gradient", projected_);
    const int output_gradient = builder_.in_place_of("state-space output gradient", gradient);
    LayerStep& norm = kernel("mixer_norm", KernelKind::kGatedNormBackward, {gradient, output_, projected_, deviations_},
                             {projected_gradient_, output_gradient});
    norm.parameters = norm.gradients = {gain_};
    const int convolved_gradient = builder_.in_place_of("convolution output gradient", convolved_);
    LayerStep& states =
        kernel("state space", KernelKind::kStateSpaceBackward, {output_gradient, convolved_, projected_gradient_},
               with_scratch({convolved_gradient, projected_gradient_}, true));
    states.parameters = states.gradients = of_states();
    LayerStep& convolution = kernel("convolution", KernelKind::kCausalConvolutionBackward,
                                    {convolved_gradient, projected_gradient_}, {projected_gradient_});
    convolution.parameters = convolution.gradients = of_convolution();
    const int dinput = builder_.temporary(Room::kRows, "norm output gradient", builder_.tokens(), own_.hidden);
    builder_.input_gradient(in_, projected_gradient_, dinput);
    const int dnorm = builder_.summed(dinput);
    builder_.program().steps.back().holds.push_back(output_gradient_);
    const int dx = builder_.on_device() ? builder_.tensor("input gradient", builder_.own_rows(), own_.hidden)
                                        : builder_.in_place_of("input gradient", input_);
    builder_.norm_backward(norm_, dnorm, output_gradient_, input_, dx);
    builder_.program().input_gradient = dx;
  }

  void weight_grad() const {
    builder_.begin(Pass::kWeightGrad);
    builder_.weight_gradient(out_, builder_.gathered(output_gradient_), gated_);
    builder_.bias_gradient(out_, output_gradient_, true);
    builder_.weight_gradient(in_, projected_gradient_, builder_.gathered(normed_));
    builder_.bias_gradient(in_, projected_gradient_, false);
  }

 private:
  DividedPiece inner() const { return {"heads", own_.heads, own_.head_size}; }
  DividedPiece of_groups() const { return {"groups", own_.groups, own_.state_size}; }
  std::vector<DividedPiece> convolved() const { return {inner(), of_groups(), of_groups()}; }
  std::vector<DividedPiece> projected() const {
    return {inner(), inner(), of_groups(), of_groups(), {"heads", own_.heads}};
  }

  int of_heads(const char* name, InitialValues initial) const {
    const int added = builder_.parameter(name, {own_.heads}, 0, {{"heads", own_.heads}});
    builder_.parameter_at(added).initial = initial;
    return added;
  }
  Positions of_states() const { return {decay_, step_bias_, skip_}; }
  Positions of_convolution() const { return taps_bias_ < 0 ? Positions{taps_} : Positions{taps_, taps_bias_}; }

  /// Adds the memory in which a device computes the heads.
  Positions with_scratch(Positions writes, bool is_backward) const {
    if (!builder_.on_device()) return writes;
    const std::vector<std::int64_t> shape = shape_of(KernelKind::kStateSpaceForward);
    const std::int64_t elements =
        state_space_scratch(shape[1], own_.head_size, own_.state_size, own_.chunk, is_backward).elements;
    writes.push_back(builder_.tensor(is_backward ? "state-space backward scratch" : "state-space scratch",
                                     shape[0] * own_.heads, elements, StoredType::kSingle));
    return writes;
  }

  LayerStep& kernel(const char* name, KernelKind kind, const Positions& reads, const Positions& writes) const {
    return builder_.kernel(name, kernel_call(kind, shape_of(kind)), reads, writes);
  }
  std::vector<std::int64_t> shape_of(KernelKind kind) const {
    const std::int64_t sequences = builder_.work().microbatch, sequence = builder_.tokens() / sequences;
    switch (kind) {
      case KernelKind::kCausalConvolutionForward:
      case KernelKind::kCausalConvolutionBackward:
        return {sequences, sequence, own_.convolved(), own_.taps};
      case KernelKind::kGatedNormForward:
      case KernelKind::kGatedNormBackward:
        return {builder_.tokens(), own_.inner(), own_.groups};
      default:
        return {sequences, sequence, own_.heads, own_.head_size, own_.groups, own_.state_size, own_.chunk};
    }
  }

  ProgramBuilder& builder_;
  Mamba2Layer own_;  // of a tensor rank
  Norm norm_;
  Product in_;
  int taps_, taps_bias_, decay_, step_bias_, skip_, gain_;
  Product out_;
  int input_ = -1, normed_ = -1, projected_ = -1, convolved_ = -1, output_ = -1, deviations_ = -1, gated_ = -1;
  int output_gradient_ = -1, projected_gradient_ = -1;
};

}  // namespace

void emit(ProgramBuilder& builder, const Mamba2Layer& layer) {
  Mamba2Block block(builder, layer);
  if (builder.parameters_only()) return;
  block.forward();
  block.input_grad();
  block.weight_grad();
}

}}  // namespace plumb::kernels
