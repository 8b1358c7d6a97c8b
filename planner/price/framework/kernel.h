#pragma once
// The work of a framework's rank for one layer and one micro-batch: kernels with their own shapes and bytes, and the
// collectives around them. framework/transformer_ops.h and framework/vocabulary_ops.h make the lists, and
// framework/kernel_time.h times them.

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/layer.h"
#include "planner/price/kernel/gemm_time.h"
#include "schedules/cost_table.h"

namespace plumb { inline namespace planner {

/// One or more equal kernels.
struct DeviceKernel {
  enum class Kind : std::uint8_t { kGemm, kAttentionForward, kAttentionBackward, kTraffic };
  std::string_view name;
  Kind kind = Kind::kTraffic;
  GemmShape shape{};                   ///< GEMMs only: shape of one kernel
  GemmForm form = GemmForm::kForward;  ///< GEMMs only
  std::int64_t alignment = 0;          ///< GEMMs only: elements of a row in memory; 0: aligned
  bool batched = false;                ///< GEMMs only: activations by activations, in the wider precision
  bool wide = false;                   ///< GEMMs only: weights in the wider precision
  bool routed = false;                 ///< kernel of routed experts or of their exchange
  bool biased = false;                 ///< kernel of routed experts whose biases are added by kernels of their own
  bool narrow = false;                 ///< kernel of routed experts of few channels (StackSpec::narrow_expert_ffn)
  double flops = 0;                    ///< attention only
  double sequence = 0;                 ///< attention only: tokens of a query's past and future
  double bytes = 0;                    ///< bytes that must cross memory once
  int launches = 1;                    ///< launches that the host makes for it
};

/// The experts among which a token picks.
struct ExpertPicks {
  int experts = 0;
  int picks = 0;
  int groups = 1;            ///< equal groups of neighbouring experts
  int groups_per_token = 1;  ///< groups from which the picks come
};

/// A collective of one rank's group.
struct KernelExchange {
  Group group = Group::kTensor;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::int64_t bytes = 0;  ///< the whole buffer of one rank
  int count = 1;
  /// The picks of an exchange that sends one copy for several experts of a rank, where `bytes` counts one for each pick.
  /// Other collectives have no experts here.
  ExpertPicks picks{};
};

struct PassOps {
  std::vector<DeviceKernel> kernels;
  std::vector<KernelExchange> exchanges;
};

struct LayerOps {
  PassOps forward;
  PassOps input_grad;
  PassOps weight_grad;
  PassOps rebuild_selective;  ///< kernels that StackSpec::selective rebuilds
  PassOps rebuild_full;       ///< a transformer layer's forward again
};

}}  // namespace plumb::planner
