// Emits multi-head latent attention (DeepSeek-AI 2024, 2405.04434, section 2.1). Queries, and keys with values, are
// compressed by matrices that every tensor rank has, normalised, and expanded by matrices of which a rank has its a/t
// heads. The keys of all heads share their turned channels, which are not compressed. Ranks compress their own rows.

#include "kernels/layer/emit/block_part.h"
#include "kernels/layer/emit/ring_memory.h"

namespace plumb { inline namespace kernels {
namespace {

constexpr const char* kCompressed = "compressed channels";

class LatentAttention : public BlockPart {
 public:
  LatentAttention(ProgramBuilder& builder, const TransformerLayer& layer)
      : layer_(layer),
        heads_(builder.share_of(layer).heads),
        query_width_(heads_ * layer.head_size),
        value_width_(heads_ * layer.value_size) {
    const bool compressed = layer.query_rank > 0;
    if (compressed) {
      query_down_ = builder.product("query_down", layer.query_rank, layer.hidden, -1, false);
      query_norm_ = builder.norm("query_norm", layer.norm, layer.query_rank);
    }
    query_up_ = builder.product("query_up", query_width_, compressed ? layer.query_rank : layer.hidden, 0, false,
                                {{"heads", heads_, layer.head_size}});
    kv_down_ = builder.product("kv_down", layer.kv_rank + layer.rotary_size, layer.hidden, -1, false);
    kv_norm_ = builder.norm("kv_norm", layer.norm, layer.kv_rank);
    const std::int64_t key_and_value = layer.head_size - layer.rotary_size + layer.value_size;
    kv_up_ =
        builder.product("kv_up", heads_ * key_and_value, layer.kv_rank, 0, false, {{"heads", heads_, key_and_value}});
    if (layer.sinks) sinks_ = builder.parameter("attention.sinks", {heads_}, 0, {{"heads", heads_}});
    out_ = builder.product("attention_output", layer.hidden, value_width_, 1, layer.linear_bias,
                           {{"heads", heads_, layer.value_size}});
  }

  int forward(ProgramBuilder& builder, int input) override {
    const std::int64_t tokens = builder.tokens(), own = builder.own_rows();
    const int queries = builder.tensor("queries", tokens, query_width_);
    builder.multiply(query_up_, builder.gathered(query_input(builder, input)), queries);
    compressed_ = builder.tensor("compressed keys and values", own, kv_down_.out);
    builder.multiply(kv_down_, input, compressed_);
    normed_ = builder.tensor("kv_norm output", own, layer_.kv_rank);
    builder.norm_forward(kv_norm_, norm_input(builder), normed_);
    const int keys_and_values = builder.tensor("keys and values", tokens, kv_up_.out);
    builder.multiply(kv_up_, builder.gathered(normed_), keys_and_values);
    const int shared = shared_keys(builder);
    rotate(builder, queries, shared);
    qkv_ = builder.tensor("qkv", tokens, 2 * query_width_ + value_width_);
    builder.kernel("heads joined", kernel_call(KernelKind::kJoinHeads, joined_shape(builder)),
                   {queries, shared, keys_and_values}, {qkv_});
    pass_round(builder, ExchangeKind::kRing, "keys and values", qkv_);
    log_sum_exp_ = builder.tensor("log-sum-exp", tokens, heads_, StoredType::kSingle);
    output_ = builder.tensor("attention output", tokens, value_width_);
    attend(builder, KernelKind::kLatentAttentionForward, {qkv_}, {output_, log_sum_exp_});
    const int branch = builder.temporary(Room::kRows, "attention branch", tokens, layer_.hidden);
    builder.multiply(out_, output_, branch);
    return builder.summed(branch);
  }

  void add_output_bias(ProgramBuilder& builder, int result) const override { builder.add_bias(out_, result); }

  int input_grad(ProgramBuilder& builder, int output_gradient) override {
    const std::int64_t tokens = builder.tokens(), own = builder.own_rows();
    const int gradient = builder.tensor("attention output gradient", tokens, value_width_);
    builder.input_gradient(out_, builder.gathered(output_gradient), gradient);
    const int dqkv = builder.tensor("qkv gradient", tokens, builder.at(qkv_).columns);
    pass_round(builder, ExchangeKind::kRing, "keys and values", qkv_);
    Positions writes = {dqkv};
    if (builder.on_device())
      writes.push_back(builder.tensor("products of outputs and gradients", tokens, heads_, StoredType::kSingle));
    LayerStep& attended =
        attend(builder, KernelKind::kLatentAttentionBackward, {qkv_, gradient, output_, log_sum_exp_}, writes);
    if (sinks_ >= 0) attended.gradients = {sinks_};
    pass_round(builder, ExchangeKind::kRingSum, "gradients of keys and values", dqkv);

    queries_gradient_ = builder.tensor("query gradient", tokens, query_width_);
    keys_and_values_gradient_ = builder.tensor("gradient of keys and values", tokens, kv_up_.out);
    int shared = builder.tensor("gradient of shared keys", tokens, layer_.rotary_size);
    builder.kernel("heads split", kernel_call(KernelKind::kSplitHeads, joined_shape(builder)), {dqkv},
                   {queries_gradient_, shared, keys_and_values_gradient_});
    rotate(builder, queries_gradient_, shared);
    shared = builder.summed(shared);

    const int dnormed = partial(builder, "kv_norm output gradient", layer_.kv_rank);
    builder.input_gradient(kv_up_, keys_and_values_gradient_, dnormed);
    compressed_gradient_ = builder.tensor("gradient of compressed keys and values", own, kv_down_.out);
    norm_input_grad(builder, builder.summed(dnormed), shared);
    const int dinput = builder.tensor("gradient through keys and values", own, layer_.hidden);
    builder.input_gradient(kv_down_, compressed_gradient_, dinput);
    const int through_queries = query_input_grad(builder);
    builder.kernel("gradients through queries and keys", kernel_call(KernelKind::kResidualAdd, {own, layer_.hidden}),
                   {dinput, through_queries}, {dinput});
    return dinput;
  }

  void weight_grad(ProgramBuilder& builder, int output_gradient, int input) const override {
    builder.weight_gradient(out_, builder.gathered(output_gradient), output_);
    builder.bias_gradient(out_, output_gradient, true);
    builder.weight_gradient(kv_up_, keys_and_values_gradient_, builder.gathered(normed_));
    builder.replicated_weight_gradient(kv_down_, compressed_gradient_, input);
    const bool compressed = layer_.query_rank > 0;
    builder.weight_gradient(query_up_, queries_gradient_, builder.gathered(compressed ? query_normed_ : input));
    if (compressed) builder.replicated_weight_gradient(query_down_, query_compressed_gradient_, input);
  }

 private:
  /// Returns the first of the compressed channels, which the norm of keys and values reads, in rows of their own.
  int norm_input(ProgramBuilder& builder) {
    packed_ = builder.tensor("compressed keys and values without shared keys", builder.own_rows(), layer_.kv_rank);
    builder.copy_columns(kCompressed, 0, compressed_, packed_);
    return packed_;
  }

  /// Writes the gradient of the compressed channels: the norm has the first, and the shared keys are the others.
  void norm_input_grad(ProgramBuilder& builder, int output_gradient, int shared) {
    const int packed = builder.in_place_of("gradient before kv_norm", packed_);
    builder.norm_backward(kv_norm_, output_gradient, -1, packed_, packed);
    builder.copy_columns(kCompressed, 0, packed, compressed_gradient_);
    builder.copy_columns(kCompressed, layer_.kv_rank, shared, compressed_gradient_, true);
  }

  /// Returns what the queries are computed from [R, ...]: the layer's normed input, or the compressed queries.
  int query_input(ProgramBuilder& builder, int input) {
    if (layer_.query_rank == 0) return input;
    query_compressed_ = builder.tensor("compressed queries", builder.own_rows(), layer_.query_rank);
    builder.multiply(query_down_, input, query_compressed_);
    query_normed_ = builder.tensor("query_norm output", builder.own_rows(), layer_.query_rank);
    builder.norm_forward(query_norm_, query_compressed_, query_normed_);
    return query_normed_;
  }

  /// Returns the gradient [R, h] of the layer's normed input through the queries.
  int query_input_grad(ProgramBuilder& builder) {
    const std::int64_t own = builder.own_rows();
    const int before = partial(builder, "gradient before queries", query_up_.in);
    builder.input_gradient(query_up_, queries_gradient_, before);
    const int summed = builder.summed(before);
    if (layer_.query_rank == 0) return summed;
    query_compressed_gradient_ = builder.in_place_of("gradient of compressed queries", query_compressed_);
    builder.norm_backward(query_norm_, summed, -1, query_compressed_, query_compressed_gradient_);
    const int dinput = builder.tensor("gradient through queries", own, layer_.hidden);
    builder.input_gradient(query_down_, query_compressed_gradient_, dinput);
    return dinput;
  }

  /// Returns the turned channels of all T rows, in storage of their own.
  int shared_keys(ProgramBuilder& builder) const {
    const int shared = builder.tensor("shared keys", builder.tokens(), layer_.rotary_size);
    if (builder.divides_rows()) {
      builder.exchange("shared keys gathered",
                       {.kind = ExchangeKind::kAllGather,
                        .group = ExchangeGroup::kTensor,
                        .elements = builder.at(shared).elements()},
                       {compressed_}, {shared});
    } else {
      builder.copy_columns("shared keys", layer_.kv_rank, compressed_, shared);
    }
    return shared;
  }

  void rotate(ProgramBuilder& builder, int queries, int shared) const {
    if (layer_.rotary_size == 0) return;
    const auto turn = [&](std::int64_t heads, int tensor) {
      builder.kernel("rotary", kernel_call(KernelKind::kRotary, {builder.tokens(), heads, layer_.rotary_size}),
                     {tensor}, {tensor});
    };
    turn(heads_, queries);
    turn(1, shared);
  }

  LayerStep& attend(ProgramBuilder& builder, KernelKind kind, const Positions& reads, const Positions& writes) const {
    const LayerWork& work = builder.work();
    LayerStep& step = builder.kernel(
        "attention",
        kernel_call(kind, {work.microbatch, work.sequence, heads_, layer_.head_size, layer_.value_size, layer_.window}),
        reads, writes);
    step.ranks = work.context_parallel;
    if (sinks_ >= 0) step.parameters = {sinks_};
    add_ring_memory(
        builder, step,
        {.keys = query_width_ + value_width_, .sums = step.pass == Pass::kForward ? value_width_ : query_width_});
    return step;
  }

  void pass_round(ProgramBuilder& builder, ExchangeKind kind, const char* name, int moved) const {
    const LayerWork& work = builder.work();
    if (work.context_parallel == 1) return;
    const std::int64_t elements = work.microbatch * work.sequence * (query_width_ + value_width_);
    builder.exchange(name, {.kind = kind, .group = ExchangeGroup::kContext, .elements = elements}, {moved},
                     kind == ExchangeKind::kRing ? Positions{} : Positions{moved});
  }

  std::vector<std::int64_t> joined_shape(const ProgramBuilder& builder) const {
    return {builder.tokens(), heads_, layer_.head_size, layer_.rotary_size, layer_.value_size};
  }

  static int partial(ProgramBuilder& builder, const char* name, std::int64_t columns) {
    return builder.tensor(name, builder.tokens(), columns);
  }

  const TransformerLayer& layer_;
  std::int64_t heads_, query_width_, value_width_;
  Product query_down_, query_up_, kv_down_, kv_up_, out_;
  Norm query_norm_, kv_norm_;
  int sinks_ = -1;
  int query_compressed_ = -1, query_normed_ = -1, compressed_ = -1, packed_ = -1, normed_ = -1;
  int qkv_ = -1, log_sum_exp_ = -1, output_ = -1;
  int queries_gradient_ = -1, keys_and_values_gradient_ = -1, compressed_gradient_ = -1;
  int query_compressed_gradient_ = -1;
};

}  // namespace

std::unique_ptr<BlockPart> latent_attention_part(ProgramBuilder& builder, const TransformerLayer& layer) {
  return std::make_unique<LatentAttention>(builder, layer);
}

}}  // namespace plumb::kernels
