// Emits the mixers whose states are computed in chunks: Mamba-2's (Dao & Gu 2024, figure 6) and the gated delta net
// (Yang et al. 2024, figure 1). Both are a projection, a convolution of some of its columns, states, a gated norm and a
// projection. A tensor rank has whole groups with their heads (Dao & Gu, section 8.1), so that the norm needs no
// exchange. The mixer's projection holds its own gradient after the input gradient: each step of the backward turns the
// columns that it has read for the last time into gradients.

#include "kernels/layer/emit/block_part.h"
#include "kernels/layer/state_space_scratch.h"

namespace plumb { inline namespace kernels {
namespace {

/// The sizes in which the two mixers differ, on a tensor rank.
struct ChunkedSizes {
  std::int64_t convolved = 0;  ///< columns that are convolved
  std::int64_t inner = 0;      ///< columns of the states' output
  std::int64_t heads = 0;
  std::int64_t norms = 0;  ///< groups of the output that are normed by themselves; 0: there is a gate alone
  std::int64_t gains = 0;  ///< of the norm
  std::int64_t taps = 0;
  bool linear_bias = false;
  bool convolution_bias = false;
  bool has_skip = false;  ///< each head adds its input to its output
  std::vector<DividedPiece> convolved_pieces, projected_pieces;
  DividedPiece inner_piece;
  KernelKind forward{}, backward{};
  std::vector<std::int64_t> states_shape;     ///< behind {b, s} in the shape of both kernels
  std::int64_t forward_scratch_elements = 0;  ///< of a head, on a device
  std::int64_t backward_scratch_elements = 0;
};

std::int64_t width_of(const std::vector<DividedPiece>& pieces) {
  std::int64_t width = 0;
  for (const DividedPiece& piece : pieces) width += piece.size();
  return width;
}

ChunkedSizes sizes_of(const Mamba2Mixer& own, std::int64_t sequence) {
  const DividedPiece inner{"heads", own.heads, own.head_size}, groups{"groups", own.groups, own.state_size};
  const auto scratch = [&](bool is_backward) {
    return state_space_scratch(sequence, own.head_size, own.state_size, own.chunk, is_backward).elements;
  };
  return {.convolved = own.convolved(),
          .inner = own.inner(),
          .heads = own.heads,
          .norms = own.gated_norm ? own.groups : 0,
          .gains = own.inner(),
          .taps = own.taps,
          .linear_bias = own.linear_bias,
          .convolution_bias = own.convolution_bias,
          .has_skip = true,
          .convolved_pieces = {inner, groups, groups},
          .projected_pieces = {inner, inner, groups, groups, {"heads", own.heads}},
          .inner_piece = inner,
          .forward = KernelKind::kStateSpaceForward,
          .backward = KernelKind::kStateSpaceBackward,
          .states_shape = {own.heads, own.head_size, own.groups, own.state_size, own.chunk},
          .forward_scratch_elements = scratch(false),
          .backward_scratch_elements = scratch(true)};
}

ChunkedSizes sizes_of(const DeltaNetMixer& own, std::int64_t /*sequence*/) {
  const DividedPiece keys{"key heads", own.key_heads, own.key_size},
      inner{"value heads", own.value_heads, own.value_size}, numbers{"value heads", own.value_heads};
  return {.convolved = own.convolved(),
          .inner = own.inner(),
          .heads = own.value_heads,
          .norms = own.value_heads,
          .gains = own.value_size,
          .taps = own.taps,
          .convolved_pieces = {keys, keys, inner},
          .projected_pieces = {keys, keys, inner, inner, numbers, numbers},
          .inner_piece = inner,
          .forward = KernelKind::kDeltaRuleForward,
          .backward = KernelKind::kDeltaRuleBackward,
          .states_shape = {own.value_heads, own.key_heads, own.key_size, own.value_size, own.chunk}};
}

ChunkedSizes sizes_of(const StateMixer& mixer, const LayerWork& work) {
  const std::int64_t sequence = tokens_in(work) / work.microbatch;
  if (const auto* mamba2 = std::get_if<Mamba2Mixer>(&mixer))
    return sizes_of(rank_share(*mamba2, work.tensor_parallel), sequence);
  return sizes_of(rank_share(std::get<DeltaNetMixer>(mixer), work.tensor_parallel), sequence);
}

class ChunkedStates : public BlockPart {
 public:
  ChunkedStates(ProgramBuilder& builder, const TransformerLayer& layer)
      : hidden_(layer.hidden),
        own_(sizes_of(layer.states, builder.work())),
        in_(builder.product("mixer_in", width_of(own_.projected_pieces), hidden_, 0, own_.linear_bias,
                            own_.projected_pieces)),
        taps_(builder.parameter("convolution.weight", {own_.convolved, own_.taps}, 0, own_.convolved_pieces)),
        taps_bias_(own_.convolution_bias
                       ? builder.parameter("convolution.bias", {own_.convolved}, 0, own_.convolved_pieces)
                       : -1),
        decay_(of_heads(builder, "decay_log", InitialValues::kDecayLog)),
        step_bias_(of_heads(builder, "step.bias", InitialValues::kStepBias)),
        skip_(own_.has_skip ? of_heads(builder, "skip", InitialValues::kOnes) : -1),
        gain_(own_.norms > 0 ? gain(builder) : -1),
        out_(builder.product("mixer_out", hidden_, own_.inner, 1, own_.linear_bias, {own_.inner_piece})) {}

  int forward(ProgramBuilder& builder, int input) override {
    const std::int64_t tokens = builder.tokens();
    projected_ = builder.tensor("projection", tokens, in_.out);
    builder.multiply(in_, builder.gathered(input), projected_);
    builder.add_bias(in_, projected_);
    convolved_ = builder.tensor("convolution output", tokens, own_.convolved);
    LayerStep& convolution = convolve(builder, KernelKind::kCausalConvolutionForward, {projected_}, {convolved_});
    convolution.parameters = of_convolution();
    convolution.cheap = true;
    output_ = builder.tensor("state-space output", tokens, own_.inner);
    pass_states(builder, own_.forward, {convolved_, projected_},
                with_scratch(builder, {output_}, own_.forward_scratch_elements, "state-space scratch"))
        .parameters = of_states();
    if (own_.norms > 0) deviations_ = builder.tensor("mixer_norm deviations", tokens, own_.norms, StoredType::kSingle);
    gated_ = builder.tensor(own_.norms > 0 ? "mixer_norm output" : "gate output", tokens, own_.inner);
    LayerStep& gate = own_.norms > 0
                          ? norm(builder, KernelKind::kGatedNormForward, {output_, projected_}, {gated_, deviations_})
                          : plain_gate(builder, KernelKind::kGateForward, {output_, projected_}, {gated_});
    if (gain_ >= 0) gate.parameters = {gain_};
    gate.cheap = true;
    const int branch = builder.temporary(Room::kRows, "branch", tokens, hidden_);
    builder.multiply(out_, gated_, branch);
    return builder.summed(branch);
  }

  void add_output_bias(ProgramBuilder& builder, int result) const override { builder.add_bias(out_, result); }

  int input_grad(ProgramBuilder& builder, int output_gradient) override {
    const int gradient = builder.tensor("mixer_norm output gradient", builder.tokens(), own_.inner);
    builder.input_gradient(out_, builder.gathered(output_gradient), gradient);
    projected_gradient_ = builder.in_place_of("projection gradient", projected_);
    const int states_gradient = builder.in_place_of("state-space output gradient", gradient);
    const Positions written = {projected_gradient_, states_gradient};
    if (own_.norms > 0) {
      LayerStep& step =
          norm(builder, KernelKind::kGatedNormBackward, {gradient, output_, projected_, deviations_}, written);
      step.parameters = step.gradients = {gain_};
    } else {
      plain_gate(builder, KernelKind::kGateBackward, {gradient, output_, projected_}, written);
    }
    const int convolved_gradient = builder.in_place_of("convolution output gradient", convolved_);
    LayerStep& states = pass_states(builder, own_.backward, {states_gradient, convolved_, projected_gradient_},
                                    with_scratch(builder, {convolved_gradient, projected_gradient_},
                                                 own_.backward_scratch_elements, "state-space backward scratch"));
    states.parameters = states.gradients = of_states();
    LayerStep& convolution = convolve(builder, KernelKind::kCausalConvolutionBackward,
                                      {convolved_gradient, projected_gradient_}, {projected_gradient_});
    convolution.parameters = convolution.gradients = of_convolution();
    const int dinput = builder.temporary(Room::kRows, "norm output gradient", builder.tokens(), hidden_);
    builder.input_gradient(in_, projected_gradient_, dinput);
    return builder.summed(dinput);
  }

  void weight_grad(ProgramBuilder& builder, int output_gradient, int input) const override {
    builder.weight_gradient(out_, builder.gathered(output_gradient), gated_);
    builder.bias_gradient(out_, output_gradient, true);
    builder.weight_gradient(in_, projected_gradient_, builder.gathered(input));
    builder.bias_gradient(in_, projected_gradient_, false);
  }

 private:
  int of_heads(ProgramBuilder& builder, const char* name, InitialValues initial) const {
    const int added = builder.parameter(name, {own_.heads}, 0, {{own_.inner_piece.unit, own_.heads}});
    builder.parameter_at(added).initial = initial;
    return added;
  }

  /// The heads of a delta net share one gain.
  int gain(ProgramBuilder& builder) const {
    const bool is_shared = own_.gains < own_.inner;
    const int added = is_shared ? builder.parameter("mixer_norm.gain", {own_.gains})
                                : builder.parameter("mixer_norm.gain", {own_.gains}, 0, {own_.inner_piece});
    builder.parameter_at(added).initial = InitialValues::kOnes;
    return added;
  }

  Positions of_states() const {
    return skip_ < 0 ? Positions{decay_, step_bias_} : Positions{decay_, step_bias_, skip_};
  }
  Positions of_convolution() const { return taps_bias_ < 0 ? Positions{taps_} : Positions{taps_, taps_bias_}; }

  /// Adds the memory in which a device computes the heads.
  Positions with_scratch(ProgramBuilder& builder, Positions writes, std::int64_t elements, const char* name) const {
    if (!builder.on_device() || elements == 0) return writes;
    writes.push_back(builder.tensor(name, builder.work().microbatch * own_.heads, elements, StoredType::kSingle));
    return writes;
  }

  LayerStep& convolve(ProgramBuilder& builder, KernelKind kind, const Positions& reads, const Positions& writes) const {
    const std::int64_t sequences = builder.work().microbatch;
    return builder.kernel("convolution",
                          kernel_call(kind, {sequences, builder.tokens() / sequences, own_.convolved, own_.taps}),
                          reads, writes);
  }
  LayerStep& pass_states(ProgramBuilder& builder, KernelKind kind, const Positions& reads,
                         const Positions& writes) const {
    const std::int64_t sequences = builder.work().microbatch;
    std::vector<std::int64_t> shape = {sequences, builder.tokens() / sequences};
    shape.insert(shape.end(), own_.states_shape.begin(), own_.states_shape.end());
    return builder.kernel("state space", kernel_call(kind, std::move(shape)), reads, writes);
  }
  LayerStep& norm(ProgramBuilder& builder, KernelKind kind, const Positions& reads, const Positions& writes) const {
    return builder.kernel("mixer_norm", kernel_call(kind, {builder.tokens(), own_.inner, own_.norms}), reads, writes);
  }
  LayerStep& plain_gate(ProgramBuilder& builder, KernelKind kind, const Positions& reads,
                        const Positions& writes) const {
    return builder.kernel("gate", kernel_call(kind, {builder.tokens(), own_.inner}), reads, writes);
  }

  std::int64_t hidden_;
  ChunkedSizes own_;
  Product in_;
  int taps_, taps_bias_, decay_, step_bias_, skip_, gain_;
  Product out_;
  int projected_ = -1, convolved_ = -1, output_ = -1, deviations_ = -1, gated_ = -1, projected_gradient_ = -1;
};

}  // namespace

std::unique_ptr<BlockPart> chunked_states_part(ProgramBuilder& builder, const TransformerLayer& layer) {
  return std::make_unique<ChunkedStates>(builder, layer);
}

}}  // namespace plumb::kernels
