// Emits a decoder block: norm, what mixes tokens, residual sum, norm, MLP or experts, residual sum; or, with a parallel
// residual, both halves from the block's input, and their sum. A half that is left out has no steps. Attention and a
// state mixer beside each other take the same norm's output, and each is added to the residual by itself.
//
// Gradients take the place of tensors that are not needed any more. After the input gradient the residual holds the
// gradient between the halves. On the host the input holds the gradient of the input; on a device that gradient lies
// with the layer before, and results of products wait beside the residual sums instead of becoming them.

#include "kernels/layer/emit/block_part.h"

namespace plumb { inline namespace kernels {
namespace {

class DecoderBlock {
 public:
  DecoderBlock(ProgramBuilder& builder, const TransformerLayer& layer) : builder_(builder), layer_(layer) {
    if (layer.mixes_tokens()) norm1_ = builder.norm("norm1", layer.norm, layer.hidden);
    if (layer.heads > 0)
      mixers_.push_back(layer.kv_rank > 0 ? latent_attention_part(builder, layer) : attention_part(builder, layer));
    if (layer.mixes_states())
      mixers_.push_back(std::holds_alternative<MambaMixer>(layer.states) ? selective_scan_part(builder, layer)
                                                                         : chunked_states_part(builder, layer));
    if (!layer.feeds_forward()) return;
    norm2_ = builder.norm("norm2", layer.norm, layer.hidden);
    feed_forward_ = layer.experts > 0 ? experts_part(builder, layer) : mlp_part(builder, layer);
  }

  void forward() {
    builder_.begin(Pass::kForward);
    residual_ = input_ = builder_.input(builder_.own_rows(), layer_.hidden);
    if (!mixers_.empty()) {
      norm1_output_ = stream("norm1 output");
      builder_.norm_forward(norm1_, input_, norm1_output_);
    }
    for (const auto& mixer : mixers_) {
      const int mixed = branch(*mixer, Section::kAttention, norm1_output_, kAttentionBranch);
      const bool is_last = mixer == mixers_.back();
      const char* sum = !is_last || layer_.parallel_residual ? "partial sum" : "residual";
      residual_ = add_residual(residual_, mixed, is_last && feed_forward_ == nullptr ? "output" : sum);
    }
    builder_.program().output = residual_;
    if (feed_forward_ == nullptr) return;
    norm2_output_ = stream("norm2 output");
    builder_.norm_forward(norm2_, mlp_input(), norm2_output_);
    const int made = branch(*feed_forward_, Section::kFeedForward, norm2_output_, kFeedForwardBranch);
    builder_.program().output = add_residual(residual_, made, "output");
  }

  void input_grad() {
    builder_.begin(Pass::kInputGrad);
    stream_gradient_ = output_gradient_ = builder_.output_gradient(builder_.own_rows(), layer_.hidden);
    if (feed_forward_ != nullptr) feed_forward_input_grad();
    const int attended_gradient = mixers_.empty() ? -1 : dropped(attention_gradient(), kAttentionBranch);
    builder_.program().input_gradient = stream_gradient_;
    int dnorm1 = -1;
    for (const auto& mixer : mixers_) {
      builder_.set_own_memory(mixer != mixers_.back());  // the sum of both reads it
      const int of_mixer = branch_gradient(*mixer, Section::kAttention, attended_gradient);
      dnorm1 = dnorm1 < 0 ? of_mixer : sum_of(dnorm1, of_mixer);
    }
    if (mixers_.empty()) return;
    if (feed_forward_ == nullptr) hold(output_gradient_);
    builder_.program().input_gradient = input_gradient();
    builder_.norm_backward(norm1_, dnorm1, stream_gradient_, input_, builder_.program().input_gradient);
  }

  void weight_grad() const {
    builder_.begin(Pass::kWeightGrad);
    if (feed_forward_ != nullptr)
      branch_weights(*feed_forward_, Section::kFeedForward, output_gradient_, norm2_output_, kFeedForwardBranch);
    for (const auto& mixer : mixers_)
      branch_weights(*mixer, Section::kAttention, attention_gradient(), norm1_output_, kAttentionBranch);
    hold(output_gradient_);
  }

 private:
  static const char* dropout_name(BlockDropout mask) {
    return mask == kAttentionBranch ? "attention dropout" : "feed-forward dropout";
  }
  int stream(const char* name) const { return builder_.tensor(name, builder_.own_rows(), layer_.hidden); }
  int mlp_input() const { return layer_.parallel_residual ? input_ : residual_; }
  /// Returns the sum of the gradients that two mixers hand to their norm.
  int sum_of(int first, int second) const {
    const int sum = stream("norm1 output gradient of both");
    builder_.kernel("gradients of both mixers",
                    kernel_call(KernelKind::kResidualAdd, {builder_.own_rows(), layer_.hidden}), {first, second},
                    {sum});
    return sum;
  }

  int input_gradient() const {
    return builder_.on_device() ? stream("input gradient") : builder_.in_place_of("input gradient", input_);
  }

  void feed_forward_input_grad() {
    const int made_gradient = dropped(output_gradient_, kFeedForwardBranch);
    const int dnorm2 = branch_gradient(*feed_forward_, Section::kFeedForward, made_gradient);
    hold(made_gradient);
    if (mixers_.empty())
      stream_gradient_ = input_gradient();
    else
      stream_gradient_ =
          layer_.parallel_residual ? stream("stream gradient") : builder_.in_place_of("residual gradient", residual_);
    builder_.norm_backward(norm2_, dnorm2, output_gradient_, mlp_input(), stream_gradient_);
  }

  int attention_gradient() const { return layer_.parallel_residual ? output_gradient_ : stream_gradient_; }

  int branch(BlockPart& part, Section section, int normed, BlockDropout mask) const {
    builder_.enter(section);
    const int made = part.forward(builder_, normed);
    builder_.enter(Section::kLayer);
    part.add_output_bias(builder_, made);
    if (layer_.dropout > 0) builder_.dropout(dropout_name(mask), made, made, mask);
    return made;
  }

  int add_residual(int past, int made, const char* name) const {
    const int sum = builder_.on_device() ? stream(name) : builder_.in_place_of(name, made);
    builder_.kernel(name, kernel_call(KernelKind::kResidualAdd, {builder_.own_rows(), layer_.hidden}), {past, made},
                    {sum});
    return sum;
  }

  /// Returns the gradient of a branch before its dropout.
  int dropped(int gradient, BlockDropout mask) const {
    if (layer_.dropout == 0) return gradient;
    const int before = builder_.temporary(Room::kDropped, std::string("gradient before ") + dropout_name(mask),
                                          builder_.own_rows(), layer_.hidden);
    builder_.dropout(dropout_name(mask), gradient, before, mask);
    return before;
  }

  /// Keeps a gradient until the last step so far: executors let go of it when a part's steps are done.
  void hold(int gradient) const { builder_.program().steps.back().holds.push_back(gradient); }

  int branch_gradient(BlockPart& part, Section section, int gradient) const {
    builder_.enter(section);
    const int dnorm = part.input_grad(builder_, gradient);
    builder_.enter(Section::kLayer);
    return dnorm;
  }

  void branch_weights(const BlockPart& part, Section section, int gradient, int normed, BlockDropout mask) const {
    const int before = dropped(gradient, mask);
    builder_.enter(section);
    part.weight_grad(builder_, before, normed);
    builder_.enter(Section::kLayer);
  }

  ProgramBuilder& builder_;
  const TransformerLayer& layer_;
  Norm norm1_;
  std::vector<std::unique_ptr<BlockPart>> mixers_;
  Norm norm2_;
  std::unique_ptr<BlockPart> feed_forward_;
  int input_ = -1, norm1_output_ = -1, residual_ = -1, norm2_output_ = -1;
  int output_gradient_ = -1, stream_gradient_ = -1;
};

}  // namespace

void emit(ProgramBuilder& builder, const TransformerLayer& layer) {
  DecoderBlock block(builder, layer);
  if (builder.parameters_only()) return;
  block.forward();
  block.input_grad();
  block.weight_grad();
}

}}  // namespace plumb::kernels
