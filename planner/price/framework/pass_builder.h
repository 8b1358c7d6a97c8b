#pragma once
// Appends kernels and collectives to a pass (framework/kernel.h), so that the lists read like the framework's code.

#include <algorithm>
#include <cassert>
#include <string_view>

#include "planner/price/framework/element_bytes.h"
#include "planner/price/framework/kernel.h"

namespace plumb { inline namespace planner {

class PassBuilder {
 public:
  PassBuilder(PassOps& pass, ElementBytes bytes) : pass_(pass), bytes_(bytes) {}

  /// Adds y [m,n] = x [m,k] W^T, or the input's gradient.
  void gemm(std::string_view name, double m, double n, double k, GemmForm form = GemmForm::kForward,
            double count = 1) const {
    add_gemm(name, {m, n, k, count}, form, (m * k + k * n + m * n) * count * bytes_.activation);
  }

  /// Marks the last product as not quantized under fp8.
  void widen_last() const { last_product().wide = true; }

  /// Launches the last product as so many kernels.
  void launch_last(double kernels) const { last_product().launches = static_cast<int>(kernels); }

  /// Sets the distance of the last product's rows in memory to `elements`.
  void align_last(double elements) const { last_product().alignment = static_cast<std::int64_t>(elements); }

  /// Adds dW [m,n] += dy^T x over k rows. A `fused` product adds to the gradient buffer itself; otherwise kernels
  /// behind it do.
  void weight_gradient(std::string_view name, double m, double n, double k, bool fused, double count = 1) const {
    const double inputs = (m * k + k * n) * count * bytes_.activation;
    const double outputs = m * n * count;
    if (fused) {
      add_gemm(name, {m, n, k, count}, GemmForm::kWeightGrad, inputs + 2 * outputs * bytes_.gradient);
      return;
    }
    add_gemm(name, {m, n, k, count}, GemmForm::kWeightGrad, inputs + outputs * bytes_.activation);
    traffic("gradient accumulation", outputs * bytes_.accumulated);
  }

  /// Adds a batched product of two activations that lie in memory along a head of `size` elements.
  void batched(std::string_view name, double m, double n, double k, double count, double size) const {
    pass_.kernels.push_back({.name = name,
                             .kind = DeviceKernel::Kind::kGemm,
                             .shape = {m, n, k, count},
                             .alignment = static_cast<std::int64_t>(size),
                             .batched = true,
                             .bytes = (m * k + k * n + m * n) * count * bytes_.activation});
  }

  void traffic(std::string_view name, double bytes, int launches = 1) const {
    if (bytes > 0) pass_.kernels.push_back({.name = name, .bytes = bytes, .launches = launches});
  }

  /// Adds so many kernels that quantize activations for a product.
  void cast(double elements, double kernels = 1) const {
    traffic("cast", elements * bytes_.cast, static_cast<int>(kernels));
  }

  /// Marks the kernels from the `first` on, except the router, as routed experts'. `biased`: kernels of their own add
  /// the experts' biases. `narrow`: the experts have few channels.
  std::size_t kernel_count() const { return pass_.kernels.size(); }
  void mark_routed(std::size_t first, bool biased, bool narrow) const {
    for (std::size_t i = first; i < pass_.kernels.size(); ++i) {
      pass_.kernels[i].routed = pass_.kernels[i].name != "router";
      pass_.kernels[i].biased = biased && pass_.kernels[i].routed;
      pass_.kernels[i].narrow = narrow && pass_.kernels[i].routed;
    }
  }

  void attention(std::string_view name, DeviceKernel::Kind kind, double flops, double sequence, double bytes,
                 int launches = 1) const {
    pass_.kernels.push_back(
        {.name = name, .kind = kind, .flops = flops, .sequence = sequence, .bytes = bytes, .launches = launches});
  }

  void exchange(Group group, CollectiveKind kind, double bytes, int count = 1) const {
    pass_.exchanges.push_back({group, kind, static_cast<std::int64_t>(bytes), count});
  }

  /// Adds an all-to-all of a copy of each token for each of its picks, or one for each rank that they sit on
  /// (KernelExchange).
  void exchange_tokens(double bytes, const ExpertPicks& picks) const {
    pass_.exchanges.push_back({.group = Group::kExpert,
                               .kind = CollectiveKind::kAllToAll,
                               .bytes = static_cast<std::int64_t>(bytes),
                               .picks = picks});
  }

 private:
  void add_gemm(std::string_view name, const GemmShape& shape, GemmForm form, double bytes) const {
    pass_.kernels.push_back(
        {.name = name, .kind = DeviceKernel::Kind::kGemm, .shape = shape, .form = form, .bytes = bytes});
  }

  DeviceKernel& last_product() const {
    const auto last =
        std::ranges::find(pass_.kernels.rbegin(), pass_.kernels.rend(), DeviceKernel::Kind::kGemm, &DeviceKernel::kind);
    assert(last != pass_.kernels.rend());
    return *last;
  }

  PassOps& pass_;
  ElementBytes bytes_;
};

}}  // namespace plumb::planner
