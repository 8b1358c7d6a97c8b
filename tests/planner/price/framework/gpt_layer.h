#pragma once
// The layers and the stack from which the tests of frameworks start.

#include "kernels/layer.h"
#include "planner/price/framework/element_bytes.h"
#include "planner/price/framework/kernel.h"
#include "planner/spec/stack_spec.h"

namespace plumb::test {

/// A GPT layer of hidden size 1024, with biases and dropout.
inline const TransformerLayer kGpt{.hidden = 1024,
                                   .heads = 16,
                                   .kv_heads = 16,
                                   .head_size = 64,
                                   .ffn = 4096,
                                   .norm = NormKind::kLayerNorm,
                                   .mlp = MlpKind::kGelu,
                                   .qkv_bias = true,
                                   .linear_bias = true,
                                   .dropout = 0.1};

/// A Llama layer of that size: four queries share keys and values, and the MLP is gated.
inline const TransformerLayer kLlama{.hidden = 1024,
                                     .heads = 16,
                                     .kv_heads = 4,
                                     .head_size = 64,
                                     .ffn = 3072,
                                     .norm = NormKind::kRmsNorm,
                                     .mlp = MlpKind::kSwiglu,
                                     .rotary_size = 64};

/// Activations of 16 bits and gradients of 32.
inline constexpr ElementBytes kElementBytes{.activation = 2, .gradient = 4};

/// Returns a stack whose attention is batched products over the whole square of scores.
inline StackSpec unfused() {
  return {.name = "unfused", .attention = AttentionKernel::kUnfused, .causal_skipped = false};
}

}  // namespace plumb::test
