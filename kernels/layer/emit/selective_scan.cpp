// Emits Mamba's mixer (Gu & Dao 2023, figure 3) as its authors' kernels compute it: the selective scan takes in the
// step sizes' bias, the skip and the gate. A tensor rank has channels/t. B, C and the low-rank step sizes are sums over
// all channels, which the tensor group joins.

#include "kernels/layer/emit/block_part.h"

namespace plumb { inline namespace kernels {
namespace {

class SelectiveScan : public BlockPart {
 public:
  SelectiveScan(ProgramBuilder& builder, const TransformerLayer& layer)
      : hidden_(layer.hidden),
        own_(rank_share(std::get<MambaMixer>(layer.states), builder.work().tensor_parallel)),
        in_(builder.product("mixer_in", 2 * own_.channels, hidden_, 0, own_.linear_bias, {channels(), channels()})),
        taps_(builder.parameter("convolution.weight", {own_.channels, own_.taps}, 0, {channels()})),
        taps_bias_(own_.convolution_bias ? builder.parameter("convolution.bias", {own_.channels}, 0, {channels()})
                                         : -1),
        step_down_(builder.product("step_down", own_.step_rank, own_.channels, 1, false, {channels()})),
        states_in_(builder.product("state_inputs", 2 * own_.state_size, own_.channels, 1, false, {channels()})),
        step_gain_(own_.inner_norms ? gain(builder, "step_norm.gain", own_.step_rank) : -1),
        states_gain_(own_.inner_norms ? gain(builder, "state_inputs_norm.gain", 2 * own_.state_size) : -1),
        step_up_(builder.product("step_up", own_.channels, own_.step_rank, 0, true, {channels()})),
        decay_(builder.parameter("decay_log", {own_.channels, own_.state_size}, 0, {channels()})),
        skip_(builder.parameter("skip", {own_.channels}, 0, {channels()})),
        out_(builder.product("mixer_out", hidden_, own_.channels, 1, own_.linear_bias, {channels()})) {
    builder.parameter_at(decay_).initial = InitialValues::kDecayLog;
    builder.parameter_at(skip_).initial = InitialValues::kOnes;
  }

  int forward(ProgramBuilder& builder, int input) override {
    const std::int64_t tokens = builder.tokens();
    projected_ = builder.tensor("projection", tokens, in_.out);
    builder.multiply(in_, builder.gathered(input), projected_);
    builder.add_bias(in_, projected_);
    convolved_ = builder.tensor("convolution output", tokens, own_.channels);
    LayerStep& convolution = builder.kernel("convolution", of_convolution(builder, true), {projected_}, {convolved_});
    convolution.parameters = convolution_parameters();
    convolution.cheap = true;
    low_ = normed(builder, taken(builder, step_down_, "low-rank steps"), step_gain_, step_norm_);
    inputs_ = normed(builder, taken(builder, states_in_, "state inputs"), states_gain_, states_norm_);
    steps_ = builder.tensor("steps", tokens, own_.channels);
    builder.multiply(step_up_, low_, steps_);
    output_ = builder.tensor("state-space output", tokens, own_.channels);
    gated_ = builder.tensor("gate output", tokens, own_.channels);
    builder
        .kernel("selective scan", of_scan(builder, true), {convolved_, steps_, inputs_, projected_}, {output_, gated_})
        .parameters = scan_parameters();
    const int branch = builder.temporary(Room::kRows, "branch", tokens, hidden_);
    builder.multiply(out_, gated_, branch);
    return builder.summed(branch);
  }

  void add_output_bias(ProgramBuilder& builder, int result) const override { builder.add_bias(out_, result); }

  int input_grad(ProgramBuilder& builder, int output_gradient) override {
    const std::int64_t tokens = builder.tokens();
    const int gradient = builder.tensor("gate output gradient", tokens, own_.channels);
    builder.input_gradient(out_, builder.gathered(output_gradient), gradient);
    projected_gradient_ = builder.in_place_of("projection gradient", projected_);
    steps_gradient_ = builder.in_place_of("steps gradient", steps_);
    int inputs_gradient = builder.tensor("state inputs gradient", tokens, 2 * own_.state_size);
    const int convolved_gradient = builder.tensor("convolution output gradient", tokens, own_.channels);
    LayerStep& scan = builder.kernel("selective scan", of_scan(builder, false),
                                     {gradient, convolved_, steps_, inputs_, projected_, output_},
                                     {convolved_gradient, steps_gradient_, inputs_gradient, projected_gradient_});
    scan.parameters = scan.gradients = scan_parameters();
    int low_gradient = builder.tensor("low-rank steps gradient", tokens, own_.step_rank);
    builder.input_gradient(step_up_, steps_gradient_, low_gradient);
    low_gradient_ = normed_gradient(builder, joined(builder, low_gradient), step_gain_, step_norm_);
    inputs_gradient_ = normed_gradient(builder, joined(builder, inputs_gradient), states_gain_, states_norm_);
    add_input_gradient(builder, step_down_, low_gradient_, convolved_gradient);
    add_input_gradient(builder, states_in_, inputs_gradient_, convolved_gradient);
    LayerStep& convolution = builder.kernel("convolution", of_convolution(builder, false),
                                            {convolved_gradient, projected_gradient_}, {projected_gradient_});
    convolution.parameters = convolution.gradients = convolution_parameters();
    const int dinput = builder.temporary(Room::kRows, "norm output gradient", tokens, hidden_);
    builder.input_gradient(in_, projected_gradient_, dinput);
    return builder.summed(dinput);
  }

  void weight_grad(ProgramBuilder& builder, int output_gradient, int input) const override {
    builder.weight_gradient(out_, builder.gathered(output_gradient), gated_);
    builder.bias_gradient(out_, output_gradient, true);
    builder.weight_gradient(step_up_, steps_gradient_, low_);
    builder.weight_gradient(step_down_, low_gradient_, convolved_);
    builder.weight_gradient(states_in_, inputs_gradient_, convolved_);
    builder.weight_gradient(in_, projected_gradient_, builder.gathered(input));
    builder.bias_gradient(in_, projected_gradient_, false);
  }

 private:
  /// A norm of a small tensor that every tensor rank has whole.
  struct SmallNorm {
    int input = -1;
    int deviations = -1;
  };

  DividedPiece channels() const { return {"channels", own_.channels}; }
  Positions convolution_parameters() const { return taps_bias_ < 0 ? Positions{taps_} : Positions{taps_, taps_bias_}; }
  Positions scan_parameters() const { return {decay_, skip_, step_up_.bias}; }

  static int gain(ProgramBuilder& builder, const char* name, std::int64_t columns) {
    const int added = builder.parameter(name, {columns});
    builder.parameter_at(added).initial = InitialValues::kOnes;
    return added;
  }

  KernelCall of_convolution(const ProgramBuilder& builder, bool forward) const {
    const std::int64_t sequences = builder.work().microbatch;
    return kernel_call(forward ? KernelKind::kCausalConvolutionForward : KernelKind::kCausalConvolutionBackward,
                       {sequences, builder.tokens() / sequences, own_.channels, own_.taps});
  }
  KernelCall of_scan(const ProgramBuilder& builder, bool forward) const {
    const std::int64_t sequences = builder.work().microbatch;
    return kernel_call(forward ? KernelKind::kSelectiveScanForward : KernelKind::kSelectiveScanBackward,
                       {sequences, builder.tokens() / sequences, own_.channels, own_.state_size});
  }

  /// Sums all rows over the tensor group, on every rank.
  static int joined(ProgramBuilder& builder, int partial) {
    if (builder.work().tensor_parallel == 1) return partial;
    builder.exchange(
        builder.at(partial).name + " summed",
        {.kind = ExchangeKind::kAllReduce, .group = ExchangeGroup::kTensor, .elements = builder.at(partial).elements()},
        {partial}, {partial});
    return partial;
  }

  /// Returns a product of the convolved channels, summed over those of all tensor ranks.
  int taken(ProgramBuilder& builder, const Product& product, const char* name) const {
    const int partial = builder.tensor(name, builder.tokens(), product.out);
    builder.multiply(product, convolved_, partial);
    return joined(builder, partial);
  }

  static int normed(ProgramBuilder& builder, int input, int gain, SmallNorm& norm) {
    if (gain < 0) return input;
    const std::int64_t rows = builder.at(input).rows, columns = builder.at(input).columns;
    norm = {.input = input, .deviations = builder.tensor("small deviations", rows, 1, StoredType::kSingle)};
    const int output = builder.tensor("normed " + builder.at(input).name, rows, columns);
    builder
        .kernel("small norm", kernel_call(KernelKind::kNormForward, {rows, columns, 0}), {input},
                {output, norm.deviations})
        .parameters = {gain};
    return output;
  }
  static int normed_gradient(ProgramBuilder& builder, int gradient, int gain, const SmallNorm& norm) {
    if (gain < 0) return gradient;
    const std::int64_t rows = builder.at(gradient).rows, columns = builder.at(gradient).columns;
    const int before = builder.in_place_of("gradient before the norm", norm.input);
    LayerStep& step = builder.kernel("small norm", kernel_call(KernelKind::kNormBackward, {rows, columns, 0}),
                                     {gradient, norm.input, norm.deviations}, {before});
    step.parameters = step.gradients = {gain};
    return before;
  }

  /// Adds the product's input gradient to the gradient of the convolved channels, as a product that adds up does.
  void add_input_gradient(ProgramBuilder& builder, const Product& product, int dy, int dx) const {
    builder
        .kernel(product.name, gemm_call(builder.tokens(), product.in, product.out, GemmForm::kInputGrad), {dy, dx},
                {dx})
        .parameters = {product.weight};
  }

  std::int64_t hidden_;
  MambaMixer own_;  // of a tensor rank
  Product in_;
  int taps_, taps_bias_;
  Product step_down_, states_in_;
  int step_gain_, states_gain_;
  Product step_up_;
  int decay_, skip_;
  Product out_;
  SmallNorm step_norm_, states_norm_;
  int projected_ = -1, convolved_ = -1, low_ = -1, inputs_ = -1, steps_ = -1, output_ = -1, gated_ = -1;
  int projected_gradient_ = -1, steps_gradient_ = -1, low_gradient_ = -1, inputs_gradient_ = -1;
};

}  // namespace

std::unique_ptr<BlockPart> selective_scan_part(ProgramBuilder& builder, const TransformerLayer& layer) {
  return std::make_unique<SelectiveScan>(builder, layer);
}

}}  // namespace plumb::kernels
