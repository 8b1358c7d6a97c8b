#include "kernels/layer/kernel_call.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "kernels/layer/kinds.h"

namespace plumb { inline namespace kernels {
namespace {

/// Returns the pairs of query and key that causal attention computes for a sequence. Each query sees itself and its
/// past, and at most `window` keys in all where there is a window.
double attention_pairs(std::int64_t sequence, std::int64_t window) {
  const double s = static_cast<double>(sequence);
  if (window <= 0 || window >= sequence) return s * (s + 1) / 2;
  const double w = static_cast<double>(window);
  return w * (w + 1) / 2 + (s - w) * w;
}

struct Work {
  double flops = 0;
  double elements = 0;
};

/// Returns the work of the chunked form of a state space (Dao & Gu 2024, section 6) on `tokens`: the products of a chunk
/// of Q tokens, G times C B^T and H times those with X, and H times those with the states. `size` gives the call's shape.
template <class Size>
Work state_space_work(bool forward, double tokens, const Size& size) {
  const double heads = size(2), p = size(3), groups = size(4), n = size(5), chunk = size(6);
  const double in_chunks = groups * n * chunk, on_inputs = heads * p * chunk, on_states = heads * p * n;
  // Forward: C B^T; M X; the outputs of states, and the states. Backward: C B^T again, dB and dC; M^T dY and dY X^T; the
  // states again, their gradient, and those of B, C and X through them.
  const double flops =
      forward ? 2 * in_chunks + 2 * on_inputs + 4 * on_states : 6 * in_chunks + 4 * on_inputs + 10 * on_states;
  const double row = heads * p + 2 * groups * n + heads;
  return {tokens * flops, tokens * (forward ? row + heads * p : 2 * row + heads * p)};
}

/// Returns the work of a selective scan on `tokens`. A channel's state of N numbers takes 9 N operations a token (the
/// count that the authors of Gu & Dao 2023 use, state-spaces/mamba, issue 110), and 4 more for silu(z). The backward
/// computes the states again, and two gradients for each of the forward's products.
template <class Size>
Work selective_scan_work(bool forward, double tokens, const Size& size) {
  const double channels = size(2), n = size(3);
  const double flops = channels * (9 * n + 4) * (forward ? 1 : 3);
  // Forward: x, steps, z in, both outputs out. Backward: these inputs, the output and two gradients in, three out.
  return {tokens * flops, tokens * (channels * (forward ? 5 : 9) + 2 * n * (forward ? 1 : 2))};
}

/// Returns the work of the chunked form of the gated delta rule (Yang et al. 2024, section 3.3) on `tokens` in chunks of
/// Q: K K^T and its triangular inverse, W and U from keys and values; W S, Q S and the states; Q K^T, and its product
/// with the new values. The backward computes the first half and the states again, and two gradients of each product.
template <class Size>
Work delta_rule_work(bool forward, double tokens, const Size& size) {
  const double heads = size(2), k = size(4), v = size(5), q = size(6);
  const double prepared = 2 * q * k + 2 * q * q / 3 + 2 * q * (k + v);  // K K^T; the inverse; W and U
  const double states = 4 * k * v;                                      // W S, K^T U
  const double outputs = 2 * k * v + 2 * q * (k + v);                   // Q S, Q K^T, its product with U
  const double all = prepared + states + outputs;
  const double row = 2 * size(3) * k + heads * v + 2 * heads;
  return {tokens * heads * (forward ? all : 2 * all + prepared + states),
          tokens * (forward ? row + heads * v : 2 * row + heads * v)};
}

Work work_of(KernelKind kind, const std::vector<std::int64_t>& shape) {
  const auto size = [&](int index) { return static_cast<double>(shape[static_cast<std::size_t>(index)]); };
  const double area = shape.size() >= 2 ? size(0) * size(1) : 0;
  switch (kind) {
    case KernelKind::kExpertProducts:
    case KernelKind::kGemm: {
      const auto form = static_cast<GemmForm>(shape[4]);
      const bool twice = adds_up(form) || form == GemmForm::kForwardGelu;
      return {2 * area * size(2) * size(3), (size(0) * size(2) + size(2) * size(1) + area * (twice ? 2 : 1)) * size(3)};
    }
    case KernelKind::kAttentionForward:
    case KernelKind::kAttentionBackward: {
      // There are two products forward and five backward: the scores again, dV, dP, dQ, dK.
      const bool forward = kind == KernelKind::kAttentionForward;
      const double pairs = attention_pairs(shape[1], shape[5]);
      return {(forward ? 4 : 10) * size(0) * size(2) * size(4) * pairs,
              (forward ? 2 : 4) * area * (size(2) + size(3)) * size(4)};
    }
    case KernelKind::kLatentAttentionForward:
    case KernelKind::kLatentAttentionBackward: {
      const bool forward = kind == KernelKind::kLatentAttentionForward;
      const double pairs = size(0) * size(2) * attention_pairs(shape[1], shape[5]);
      const double row = size(2) * (2 * size(3) + 2 * size(4));  // queries, keys, values, outputs
      return {2 * pairs * (forward ? size(3) + size(4) : 3 * size(3) + 2 * size(4)), (forward ? 1 : 2) * area * row};
    }
    case KernelKind::kJoinHeads:
    case KernelKind::kSplitHeads: {
      const double heads = size(1) * (4 * size(2) - size(3) + 2 * size(4));  // once apart, once joined
      return {kind == KernelKind::kSplitHeads ? area * size(3) : 0, size(0) * (heads + size(3))};
    }
    case KernelKind::kCausalConvolutionForward:
    case KernelKind::kCausalConvolutionBackward: {
      constexpr double kSilu = 4;
      const bool forward = kind == KernelKind::kCausalConvolutionForward;
      const double elements = area * size(2);
      return {elements * ((forward ? 2 : 6) * size(3) + kSilu), (forward ? 2 : 3) * elements};
    }
    case KernelKind::kStateSpaceForward:
    case KernelKind::kStateSpaceBackward:
      return state_space_work(kind == KernelKind::kStateSpaceForward, area, size);
    case KernelKind::kSelectiveScanForward:
    case KernelKind::kSelectiveScanBackward:
      return selective_scan_work(kind == KernelKind::kSelectiveScanForward, area, size);
    case KernelKind::kDeltaRuleForward:
    case KernelKind::kDeltaRuleBackward:
      return delta_rule_work(kind == KernelKind::kDeltaRuleForward, area, size);
    case KernelKind::kGateForward:
      return {5 * area, 3 * area};
    case KernelKind::kGateBackward:
      return {10 * area, 5 * area};
    case KernelKind::kGatedNormForward:
      return {8 * area, 3 * area};
    case KernelKind::kGatedNormBackward:
      return {18 * area, 5 * area};
    case KernelKind::kNormForward:
      return {((shape[2] & 1) != 0 ? 7 : 4) * area, ((shape[2] & 2) != 0 ? 4 : 2) * area};
    case KernelKind::kNormBackward:
      return {(shape[2] ? 13 : 10) * area, 4 * area};
    case KernelKind::kActivationForward:
      return {(shape[2] ? 5 : 8) * area, (shape[2] ? 3 : 2) * area};
    case KernelKind::kActivationBackward:
      return {(shape[2] ? 10 : 14) * area, (shape[2] ? 5 : 3) * area};
    case KernelKind::kBiasForward:
      return {area, 2 * area};
    case KernelKind::kBiasBackward:
      return {area, area};
    case KernelKind::kRotary:
      return {3 * area * size(2), 2 * area * size(2)};
    case KernelKind::kResidualAdd:
      return {area, 3 * area};
    case KernelKind::kEmbeddingForward:
      return {size(2) * area, (2 + size(2)) * area};
    case KernelKind::kEmbeddingBackward:
      return {(1 + size(2)) * area, (3 + 2 * size(2)) * area};
    case KernelKind::kCrossEntropy:
      return {5 * area, 2 * area};
    case KernelKind::kAdamW:
      return {14 * size(0), 8 * size(0)};
    case KernelKind::kConvolutionForward:
    case KernelKind::kConvolutionInputGrad:
    case KernelKind::kConvolutionWeightGrad: {
      const double filter = size(5) * size(5) * size(3) / size(8);
      const auto windows = [&](std::size_t i) {
        return static_cast<double>(windows_in(shape[i], shape[5], shape[6], shape[7]));
      };
      const double output = size(0) * windows(1) * windows(2) * size(4);
      const double weights = size(4) * filter * (kind == KernelKind::kConvolutionWeightGrad ? 2 : 1);
      return {2 * output * filter, size(0) * size(1) * size(2) * size(3) + output + weights};
    }
    case KernelKind::kPoolingForward:
    case KernelKind::kPoolingBackward: {
      const double output = size(0) * size(3) * static_cast<double>(windows_in(shape[1], shape[4], shape[5])) *
                            static_cast<double>(windows_in(shape[2], shape[4], shape[5]));
      const bool forward = kind == KernelKind::kPoolingForward;
      return {forward || shape[6] != 0 ? output * size(4) * size(4) : output,
              area * size(2) * size(3) + (shape[6] != 0 ? 1 : 2) * output};
    }
    case KernelKind::kReluForward:
    case KernelKind::kReluBackward:
      return {area, 2 * area};
    case KernelKind::kDropout:
      return {area, 2 * area};
    case KernelKind::kSquaredError:
      return {4 * area, 3 * area};
    case KernelKind::kRouter:
      return {(5 + size(2)) * area, 2 * area};
    case KernelKind::kCopyRows:
      return {area, 2 * area};
    case KernelKind::kCopy:
      return {0, 2 * size(0)};
    case KernelKind::kWeighPicks:
      return {size(0) * (3 * size(1) + size(2)), size(0) * (3 * size(1) + 2 * size(2))};
    case KernelKind::kRouterProduct: {
      const double weights = size(1) * size(2) * (adds_up(static_cast<GemmForm>(shape[3])) ? 2 : 1);
      return {2 * area * size(2), size(0) * (size(1) + size(2)) + weights};
    }
    case KernelKind::kAdamW8Bit:
      return {20 * size(0), 5 * size(0)};
    case KernelKind::kSgd:
    case KernelKind::kLion:
      return {6 * size(0), 6 * size(0)};
    case KernelKind::kAdafactor: {
      const double elements = std::max(1.0, size(0)) * std::max(1.0, size(1)) * size(2);
      return {16 * elements, (shape[1] > 0 ? 4 : 6) * elements};
    }
  }
  return {};
}

struct KindInfo {
  std::string_view name;
  std::size_t shape_length;
};
constexpr std::array<KindInfo, kKernelKindCount> kKinds = {{{"gemm", 5},
                                                            {"attention_forward", 6},
                                                            {"attention_backward", 6},
                                                            {"norm_forward", 3},
                                                            {"norm_backward", 3},
                                                            {"activation_forward", 3},
                                                            {"activation_backward", 3},
                                                            {"bias_forward", 2},
                                                            {"bias_backward", 2},
                                                            {"rotary", 3},
                                                            {"residual_add", 2},
                                                            {"embedding_forward", 3},
                                                            {"embedding_backward", 3},
                                                            {"cross_entropy", 2},
                                                            {"adamw", 1},
                                                            {"convolution_forward", 9},
                                                            {"convolution_input_grad", 9},
                                                            {"convolution_weight_grad", 9},
                                                            {"pooling_forward", 7},
                                                            {"pooling_backward", 7},
                                                            {"relu_forward", 2},
                                                            {"relu_backward", 2},
                                                            {"dropout", 2},
                                                            {"squared_error", 2},
                                                            {"router", 3},
                                                            {"copy_rows", 2},
                                                            {"copy", 1},
                                                            {"weigh_picks", 3},
                                                            {"expert_products", 5},
                                                            {"router_product", 4},
                                                            {"adamw_8bit", 1},
                                                            {"sgd", 1},
                                                            {"lion", 1},
                                                            {"adafactor", 3},
                                                            {"latent_attention_forward", 6},
                                                            {"latent_attention_backward", 6},
                                                            {"join_heads", 5},
                                                            {"split_heads", 5},
                                                            {"causal_convolution_forward", 4},
                                                            {"causal_convolution_backward", 4},
                                                            {"state_space_forward", 7},
                                                            {"state_space_backward", 7},
                                                            {"gated_norm_forward", 3},
                                                            {"gated_norm_backward", 3},
                                                            {"selective_scan_forward", 4},
                                                            {"selective_scan_backward", 4},
                                                            {"delta_rule_forward", 7},
                                                            {"delta_rule_backward", 7},
                                                            {"gate_forward", 2},
                                                            {"gate_backward", 2}}};

}  // namespace

std::string_view kernel_name(KernelKind kind) {
  return kKinds[static_cast<std::size_t>(kind)].name;
}

std::size_t kernel_shape_length(KernelKind kind) {
  return kKinds[static_cast<std::size_t>(kind)].shape_length;
}

KernelCall kernel_call(KernelKind kind, std::vector<std::int64_t> shape) {
  assert(shape.size() == kernel_shape_length(kind));
  const Work work = work_of(kind, shape);
  return {.kind = kind, .shape = std::move(shape), .flops = work.flops, .elements_moved = work.elements};
}

}}  // namespace plumb::kernels
