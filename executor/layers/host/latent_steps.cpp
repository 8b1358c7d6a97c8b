#include "executor/layers/host/latent_steps.h"

namespace plumb { inline namespace executor {
namespace {

LatentHeads heads_of(const HostStep& of) {
  return {.rows = of.shape()[0],
          .heads = of.shape()[1],
          .head_size = of.shape()[2],
          .shared = of.shape()[3],
          .value_size = of.shape()[4]};
}

}  // namespace

bool is_latent(const HostStep& of) {
  return of.step.is(KernelKind::kJoinHeads) || of.step.is(KernelKind::kSplitHeads);
}

void run_latent_kernel(const HostStep& of) {
  if (of.step.is(KernelKind::kJoinHeads))
    return of.kernels().join_latent_heads(of.written(0), of.read(0), of.read(1), of.read(2), heads_of(of));
  of.kernels().split_latent_heads(of.written(0), of.written(1), of.written(2), of.read(0), heads_of(of));
}

}}  // namespace plumb::executor
