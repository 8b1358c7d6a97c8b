// Emits causal self-attention with grouped queries (Shoeybi et al. 2019 for the division of its heads). A tensor rank
// has a/t query heads and k/t, at least one, kv heads. Context ranks pass keys and values round a ring (Liu et al. 2023),
// or exchange heads for tokens (Ulysses, Jacobs et al. 2023).

#include "kernels/layer/emit/block_part.h"
#include "kernels/layer/emit/head_norms.h"
#include "kernels/layer/emit/ring_memory.h"

namespace plumb { inline namespace kernels {
namespace {

class Attention : public BlockPart {
 public:
  Attention(ProgramBuilder& builder, const TransformerLayer& layer)
      : layer_(layer),
        heads_(builder.share_of(layer).heads),
        kv_heads_(builder.share_of(layer).kv_heads),
        query_width_(heads_ * layer.head_size),
        qkv_width_(query_width_ * (layer.output_gate ? 2 : 1) + 2 * kv_heads_ * layer.head_size),
        in_(builder.product("qkv", qkv_width_, layer.hidden, 0, layer.qkv_bias,
                            {{"heads", heads_, layer.head_size * (layer.output_gate ? 2 : 1)},
                             {"kv heads", kv_heads_, layer.head_size, true},
                             {"kv heads", kv_heads_, layer.head_size, true}})),
        norms_(builder, layer, query_width_ * (layer.output_gate ? 2 : 1)),
        sinks_(layer.sinks ? builder.parameter("attention.sinks", {heads_}, 0, {{"heads", heads_}}) : -1),
        out_(builder.product("attention_output", layer.hidden, query_width_, 1, layer.linear_bias,
                             {{"heads", heads_, layer.head_size}})) {}

  int forward(ProgramBuilder& builder, int input) override {
    const std::int64_t tokens = builder.tokens();
    const int rows = builder.gathered(input);
    int qkv = builder.tensor("qkv", tokens, qkv_width_);
    builder.multiply(in_, rows, qkv);
    builder.add_bias(in_, qkv);
    norms_.forward(builder, qkv);
    rotate(builder, qkv);
    qkv_ = qkv;
    log_sum_exp_ = builder.tensor("log-sum-exp", tokens, heads_, StoredType::kSingle);
    output_ = builder.tensor("attention output", tokens, query_width_);
    if (exchanges_heads(builder)) {
      qkv_ = exchanged(builder, qkv, "qkv of all tokens");
      const int all = builder.tensor("attention output of all tokens", tokens, query_width_);
      attend(builder, KernelKind::kAttentionForward, {qkv_}, {all, log_sum_exp_});
      exchange_heads(builder, all, output_);
    } else {
      pass_round(builder, ExchangeKind::kRing, "keys and values");
      add_ring_memory(builder, attend(builder, KernelKind::kAttentionForward, {qkv_}, {output_, log_sum_exp_}),
                      ring_columns());
    }
    gated_ = output_;
    if (layer_.output_gate) {
      gated_ = builder.tensor("gated attention output", tokens, query_width_);
      gate(builder, KernelKind::kGateForward, {output_, qkv_}, {gated_});
    }
    const int branch = builder.temporary(Room::kRows, "attention branch", tokens, layer_.hidden);
    builder.multiply(out_, gated_, branch);
    return builder.summed(branch);
  }

  void add_output_bias(ProgramBuilder& builder, int result) const override { builder.add_bias(out_, result); }

  int input_grad(ProgramBuilder& builder, int output_gradient) override {
    const std::int64_t tokens = builder.tokens();
    const int rows = builder.gathered(output_gradient);
    int gradient = builder.tensor("attention output gradient", tokens, query_width_);
    builder.input_gradient(out_, rows, gradient);
    if (layer_.output_gate) {  // the gates' columns become their gradients
      const int gated_gradient = gradient;
      gradient = builder.in_place_of("gradient before the gate", gated_gradient);
      gate(builder, KernelKind::kGateBackward, {gated_gradient, output_, qkv_}, {gradient, qkv_});
    }
    attend_backward(builder, gradient);
    rotate(builder, qkv_gradient_);
    norms_.input_grad(builder, qkv_gradient_);
    const int dinput = builder.temporary(Room::kRows, "norm1 output gradient", tokens, layer_.hidden);
    builder.input_gradient(in_, qkv_gradient_, dinput);
    sum_shared_heads(builder);
    return builder.summed(dinput);
  }

  void weight_grad(ProgramBuilder& builder, int output_gradient, int input) const override {
    builder.weight_gradient(out_, builder.gathered(output_gradient), gated_);
    builder.bias_gradient(out_, output_gradient, true);
    builder.weight_gradient(in_, qkv_gradient_, builder.gathered(input));
    builder.bias_gradient(in_, qkv_gradient_, false);
  }

 private:
  static bool exchanges_heads(const ProgramBuilder& builder) {
    return builder.work().context_parallel > 1 && builder.work().exchanges_heads;
  }

  void gate(ProgramBuilder& builder, KernelKind kind, const Positions& reads, const Positions& writes) const {
    builder.kernel("gate", kernel_call(kind, {builder.tokens(), query_width_}), reads, writes);
  }

  void rotate(ProgramBuilder& builder, int qkv) const {
    if (layer_.rotary_size == 0) return;
    builder.kernel("rotary",
                   kernel_call(KernelKind::kRotary, {builder.tokens(), heads_ + kv_heads_, layer_.rotary_size}), {qkv},
                   {qkv});
  }

  /// A context rank has its share of the pairs of query and key of whole sequences.
  LayerStep& attend(ProgramBuilder& builder, KernelKind kind, const Positions& reads, const Positions& writes) const {
    const LayerWork& work = builder.work();
    LayerStep& step = builder.kernel(
        "attention",
        kernel_call(kind, {work.microbatch, work.sequence, heads_, kv_heads_, layer_.head_size, layer_.window}), reads,
        writes);
    step.ranks = work.context_parallel;
    if (sinks_ >= 0) step.parameters = {sinks_};
    if (sinks_ >= 0 && kind == KernelKind::kAttentionBackward) step.gradients = {sinks_};
    return step;
  }

  void attend_backward(ProgramBuilder& builder, int gradient) {
    const std::int64_t tokens = builder.tokens();
    if (exchanges_heads(builder)) {
      const int all_gradient = exchanged(builder, gradient, "attention output gradient of all tokens");
      const int all_output = exchanged(builder, output_, "attention output of all tokens again");
      const int all = builder.tensor("qkv gradient of all tokens", tokens, qkv_width_);
      Positions writes = {all};
      if (builder.on_device()) writes.push_back(products(builder));
      attend(builder, KernelKind::kAttentionBackward, {qkv_, all_gradient, all_output, log_sum_exp_}, writes);
      qkv_gradient_ = builder.in_place_of("qkv gradient", qkv_);
      exchange_heads(builder, all, qkv_gradient_);
      return;
    }
    pass_round(builder, ExchangeKind::kRing, "keys and values");
    const Positions reads = {qkv_, gradient, output_, log_sum_exp_};
    if (builder.on_device()) {
      const int beside = builder.tensor("qkv gradient beside qkv", tokens, qkv_width_);
      add_ring_memory(builder, attend(builder, KernelKind::kAttentionBackward, reads, {beside, products(builder)}),
                      ring_columns());
      qkv_gradient_ = builder.in_place_of("qkv gradient", qkv_);
      builder.kernel("qkv gradient", kernel_call(KernelKind::kCopy, {tokens * qkv_width_}), {beside}, {qkv_gradient_});
    } else {
      qkv_gradient_ = builder.in_place_of("qkv gradient", qkv_);
      attend(builder, KernelKind::kAttentionBackward, reads, {qkv_gradient_}).beside = true;
    }
    pass_round(builder, ExchangeKind::kRingSum, "gradients of keys and values");
  }

  /// Passes the keys and values of whole sequences, or their gradients, round the context group.
  void pass_round(ProgramBuilder& builder, ExchangeKind kind, const char* name) const {
    const LayerWork& work = builder.work();
    if (work.context_parallel == 1) return;
    const std::int64_t elements = work.microbatch * work.sequence * 2 * kv_heads_ * layer_.head_size;
    const int moved = kind == ExchangeKind::kRing ? qkv_ : qkv_gradient_;
    builder.exchange(name, {.kind = kind, .group = ExchangeGroup::kContext, .elements = elements}, {moved},
                     kind == ExchangeKind::kRing ? Positions{} : Positions{moved});
  }

  RingColumns ring_columns() const { return {.keys = 2 * kv_heads_ * layer_.head_size, .sums = query_width_}; }

  /// Returns a device's scratch of the backward.
  int products(ProgramBuilder& builder) const {
    return builder.tensor("products of outputs and gradients", builder.tokens(), heads_, StoredType::kSingle);
  }

  /// Exchanges heads for tokens, or back. A device sends from a place and receives in another.
  static void exchange_heads(ProgramBuilder& builder, int from, int to) {
    const std::int64_t rows = builder.at(from).rows, columns = builder.at(from).columns;
    Positions writes = {to};
    if (builder.on_device()) {
      writes.push_back(builder.temporary(Room::kOutgoing, "heads that are sent", rows, columns));
      writes.push_back(builder.temporary(Room::kIncoming, "heads that arrive", rows, columns));
    }
    builder.exchange(
        builder.at(from).name + " exchanged",
        {.kind = ExchangeKind::kAllToAll, .group = ExchangeGroup::kContext, .elements = builder.at(from).elements()},
        {from}, writes);
  }
  static int exchanged(ProgramBuilder& builder, int from, const char* name) {
    const int to = builder.tensor(name, builder.at(from).rows, builder.at(from).columns);
    exchange_heads(builder, from, to);
    return to;
  }

  /// Neighbouring ranks that have the same kv heads sum their gradients, in one sum over the whole group, in which each
  /// set of sharers has columns of its own.
  void sum_shared_heads(ProgramBuilder& builder) const {
    if (layer_.kv_heads >= builder.work().tensor_parallel) return;
    const std::int64_t elements = layer_.kv_heads * builder.tokens() * 2 * kv_heads_ * layer_.head_size;
    constexpr std::int64_t kPadding = 2;  // a device fills whole words with zeros
    const int all = builder.tensor("gradients of all kv heads", 1, elements + (builder.on_device() ? kPadding : 0));
    builder.exchange("gradients of shared kv heads",
                     {.kind = ExchangeKind::kAllReduce, .group = ExchangeGroup::kTensor, .elements = elements},
                     {qkv_gradient_}, {qkv_gradient_, all});
  }

  const TransformerLayer& layer_;
  std::int64_t heads_, kv_heads_, query_width_, qkv_width_;
  Product in_;
  HeadNorms norms_;
  int sinks_;
  Product out_;
  int qkv_ = -1, log_sum_exp_ = -1, output_ = -1, gated_ = -1, qkv_gradient_ = -1;
};

}  // namespace

std::unique_ptr<BlockPart> attention_part(ProgramBuilder& builder, const TransformerLayer& layer) {
  return std::make_unique<Attention>(builder, layer);
}

}}  // namespace plumb::kernels
