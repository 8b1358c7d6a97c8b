#include "planner/price/framework/mlp_ops.h"
#include "planner/spec/training_spec.h"

namespace plumb { inline namespace planner {
namespace {

using enum GemmForm;

/// A block of up projection, activation and down projection over `rows` tokens, `count` of them side by side.
struct FeedForwardProducts {
  double rows;
  double up;
  double ffn;
  double count = 1;
  double kernels = 1;  ///< kernels of each product
  bool routed = false;
};

FeedForwardProducts dense_block(const LayerContext& c) {
  return {.rows = c.sizes.tokens, .up = c.sizes.up, .ffn = c.sizes.ffn};
}

FeedForwardProducts shared_block(const LayerContext& c) {
  const double ffn = static_cast<double>(c.layer.shared_ffn) / c.work.tensor_parallel;
  return {.rows = c.sizes.tokens, .up = up_products(c.layer) * ffn, .ffn = ffn};
}

/// Returns the tokens that this rank sends through the router: its share of the sequence where experts are not divided
/// themselves.
double routed_tokens(const LayerContext& c) {
  return c.work.sequence_parallel ? c.sizes.tokens / c.work.tensor_parallel : c.sizes.tokens;
}

/// Returns the copies of tokens that one rank's experts compute.
double expert_rows(const LayerContext& c) {
  return routed_tokens(c) * static_cast<double>(c.layer.experts_per_token) * c.work.experts.tensor *
         expert_load(c.layer, c.stack);
}

FeedForwardProducts expert_block(const LayerContext& c) {
  const double local = static_cast<double>(c.layer.experts) / c.work.experts.parallel;
  const double ffn = static_cast<double>(c.layer.expert_ffn) / c.work.experts.tensor;
  return {.rows = expert_rows(c) / local,
          .up = up_products(c.layer) * ffn,
          .ffn = ffn,
          .count = local,
          .kernels = c.stack.expert_kernels ? local : 1,
          .routed = true};
}

bool biases_apart(const LayerContext& c) {
  return c.layer.linear_bias && !c.stack.fused_expert_bias;
}

void mark_routed(const LayerContext& c, const PassBuilder& pass, std::size_t first) {
  const std::int64_t narrow = c.stack.narrow_expert_ffn;
  pass.mark_routed(first, biases_apart(c), narrow == 0 || c.layer.expert_ffn <= narrow);
}

/// Adds biases of experts outside the products (Megatron-Core's TEGroupedMLP): b p in fp32 for each expert, the sum,
/// the experts joined, and the conversion to 16 bit. Kernels of their own clamp and join the gates.
void expert_bias_forward(const LayerContext& c, const PassBuilder& pass, const FeedForwardProducts& block) {
  if (!block.routed || !biases_apart(c)) return;
  const double a = c.bytes.activation;
  const double rows = block.rows * block.count;
  constexpr int kKernelsOfAnExpert = 2;
  pass.traffic("expert bias", rows * static_cast<double>(c.layer.hidden) * (6 * kFp32Bytes + 2 * a),
               static_cast<int>(block.count) * kKernelsOfAnExpert + 2);
  if (up_products(c.layer) > 1) pass.traffic("clamp", rows * block.up * 4 * a, 3);
}

/// Adds the backward of these biases: both casts, the gradient of each bias by a product and a sum, and the gradient of
/// the weights p in the same way.
void expert_bias_input_grad(const LayerContext& c, const PassBuilder& pass, const FeedForwardProducts& block) {
  if (!block.routed || !biases_apart(c)) return;
  const double a = c.bytes.activation;
  const double rows = block.rows * block.count;
  constexpr int kKernelsOfAnExpert = 5;
  pass.traffic("expert bias", rows * static_cast<double>(c.layer.hidden) * (8 * kFp32Bytes + 4 * a),
               static_cast<int>(block.count) * kKernelsOfAnExpert + 2);
  if (up_products(c.layer) > 1) pass.traffic("clamp", rows * block.up * 5 * a, 3);
}

void block_forward(const LayerContext& c, const PassBuilder& pass, const FeedForwardProducts& block,
                   bool without_down) {
  const auto h = static_cast<double>(c.layer.hidden);
  const double output = block.rows * block.ffn * block.count * c.bytes.activation;
  if (block.routed) pass.cast(block.rows * block.count * h, block.kernels);  // a dense block's norm casts its output
  pass.gemm("up", block.rows, block.up, h, kForward, block.count);
  pass.launch_last(block.kernels);
  if (!c.stack.fused_activation && c.layer.linear_bias) pass.traffic("bias", 2 * output);
  pass.traffic("activation", (up_products(c.layer) + 1) * output);
  if (without_down) return;
  pass.cast(block.rows * block.count * block.ffn, block.kernels);
  pass.gemm("down", block.rows, h, block.ffn, kForward, block.count);
  pass.launch_last(block.kernels);
  expert_bias_forward(c, pass, block);
}

void block_rebuild(const LayerContext& c, const PassBuilder& pass, const FeedForwardProducts& block) {
  const double output = block.rows * block.ffn * block.count * c.bytes.activation;
  if (up_products(c.layer) > 1) {
    pass.gemm("up", block.rows, block.up / up_products(c.layer), static_cast<double>(c.layer.hidden), kForward,
              block.count);
    pass.launch_last(block.kernels);
  }
  pass.traffic("activation", (up_products(c.layer) + 1) * output);
}

void block_input_grad(const LayerContext& c, const PassBuilder& pass, const FeedForwardProducts& block) {
  const auto h = static_cast<double>(c.layer.hidden);
  const double output = block.rows * block.ffn * block.count * c.bytes.activation;
  expert_bias_input_grad(c, pass, block);
  pass.cast(block.rows * block.count * h, block.kernels);
  pass.gemm("down", block.rows, block.ffn, h, kInputGrad, block.count);
  pass.launch_last(block.kernels);
  pass.traffic("activation", (2 * up_products(c.layer) + 1) * output);
  if (c.layer.linear_bias) pass.traffic("bias gradient", up_products(c.layer) * output);
  pass.cast(block.rows * block.count * block.up, block.kernels);
  pass.gemm("up", block.rows, h, block.up, kInputGrad, block.count);
  pass.launch_last(block.kernels);
}

void block_weight_grad(const LayerContext& c, const PassBuilder& pass, const FeedForwardProducts& block) {
  const auto h = static_cast<double>(c.layer.hidden);
  pass.weight_gradient("down", h, block.ffn, block.rows, c.stack.fused_accumulation, block.count);
  pass.launch_last(block.kernels);
  pass.weight_gradient("up", block.up, h, block.rows, c.stack.fused_accumulation, block.count);
  pass.launch_last(block.kernels);
}

/// Adds the router, the permutation and the exchange of tokens, one way.
void route(const LayerContext& c, const PassBuilder& pass, bool to_experts) {
  const double copies = expert_rows(c) * static_cast<double>(c.layer.hidden) * c.bytes.activation;
  if (to_experts) {
    constexpr double kRouterPasses = 6;  // softmax, top-k, sums by expert, in fp32
    const double scores = routed_tokens(c) * static_cast<double>(c.layer.experts);
    pass.gemm("router", routed_tokens(c), static_cast<double>(c.layer.experts), static_cast<double>(c.layer.hidden));
    pass.widen_last();
    pass.traffic("router", kRouterPasses * kFp32Bytes * scores);
  }
  pass.traffic("permutation", 2 * copies);
  if (c.work.experts.parallel > 1) {
    ExpertPicks once;
    if (c.stack.dispatch == ExpertDispatch::kPerRank) {
      once = {.experts = static_cast<int>(c.layer.experts),
              .picks = static_cast<int>(c.layer.experts_per_token),
              .groups = static_cast<int>(c.layer.expert_groups),
              .groups_per_token = static_cast<int>(c.layer.groups_per_token)};
    }
    pass.exchange_tokens(copies / c.work.experts.tensor, once);
    pass.traffic("permutation by expert", 2 * copies);
  }
}

}  // namespace

void mlp_forward(const LayerContext& c, const PassBuilder& pass, bool without_down) {
  if (c.layer.experts == 0) {
    block_forward(c, pass, dense_block(c), without_down);
    return;
  }
  const std::size_t first = pass.kernel_count();
  route(c, pass, true);
  block_forward(c, pass, expert_block(c), false);
  route(c, pass, false);
  mark_routed(c, pass, first);
  if (c.layer.shared_ffn > 0) block_forward(c, pass, shared_block(c), false);
}

void mlp_rebuild(const LayerContext& c, const PassBuilder& pass) {
  if (c.layer.experts == 0) {
    block_rebuild(c, pass, dense_block(c));
    return;
  }
  const std::size_t first = pass.kernel_count();
  route(c, pass, true);
  block_rebuild(c, pass, expert_block(c));
  mark_routed(c, pass, first);
  if (c.layer.shared_ffn > 0) block_rebuild(c, pass, shared_block(c));
}

void expert_activation(const LayerContext& c, const PassBuilder& pass) {
  if (c.layer.experts == 0) return;
  const FeedForwardProducts block = expert_block(c);
  const std::size_t first = pass.kernel_count();
  pass.traffic("activation", (up_products(c.layer) + 1) * block.rows * block.ffn * block.count * c.bytes.activation);
  mark_routed(c, pass, first);
}

void mlp_input_grad(const LayerContext& c, const PassBuilder& pass) {
  if (c.layer.experts == 0) {
    block_input_grad(c, pass, dense_block(c));
    return;
  }
  if (c.layer.shared_ffn > 0) block_input_grad(c, pass, shared_block(c));
  const std::size_t first = pass.kernel_count();
  route(c, pass, false);
  block_input_grad(c, pass, expert_block(c));
  route(c, pass, true);
  mark_routed(c, pass, first);
}

void mlp_weight_grad(const LayerContext& c, const PassBuilder& pass) {
  if (c.layer.experts == 0) {
    block_weight_grad(c, pass, dense_block(c));
    return;
  }
  const std::size_t first = pass.kernel_count();
  block_weight_grad(c, pass, expert_block(c));
  mark_routed(c, pass, first);
  if (c.layer.shared_ffn > 0) block_weight_grad(c, pass, shared_block(c));
  pass.weight_gradient("router", static_cast<double>(c.layer.experts), static_cast<double>(c.layer.hidden),
                       routed_tokens(c), c.stack.fused_accumulation);
}

}}  // namespace plumb::planner
