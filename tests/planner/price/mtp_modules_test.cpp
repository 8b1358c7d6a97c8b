#include "planner/price/mtp_modules.h"

#include <doctest/doctest.h>

#include "planner/price/layer/model_flops.h"
#include "planner/price/pricing.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

const TrainingSpec kShortSequences{.global_batch = 8, .sequence = 512};

ModelSpec with_module(const char* preset) {
  ModelSpec model = preset_model(preset);
  model.mtp_modules = 1;
  return model;
}

template <class Value>
const Value& of_head(const Pricing& pricing, const std::vector<Value>& values) {
  return values[static_cast<std::size_t>(pricing.kind_of_layer().back())];
}

template <class Value>
const Value& of_last_block(const Pricing& pricing, const std::vector<Value>& values) {
  return values[static_cast<std::size_t>(*(pricing.kind_of_layer().end() - 2))];
}

const std::vector<LayerPrice>& prices_of(Pricing& pricing, const Layout& layout) {
  return pricing.layer_prices(layout, pricing.placements(layout).inner.front());
}

}  // namespace

TEST_CASE("a module adds a block, a projection and logits of its own to the head's time") {
  const ClusterSpec cluster = preset_cluster("h100:8");
  Pricing plain(preset_model("llama-3.2-1b"), cluster, kShortSequences),
      modules(with_module("llama-3.2-1b"), cluster, kShortSequences);
  const Layout layout{.data = 8};
  const LayerPrice &head = of_head(plain, prices_of(plain, layout)),
                   &block = of_last_block(plain, prices_of(plain, layout));
  const LayerPrice& both = of_head(modules, prices_of(modules, layout));
  for (const auto pass : {&LayerPrice::forward, &LayerPrice::input_grad, &LayerPrice::weight_grad}) {
    const Seconds least = 2 * (head.*pass).compute + (block.*pass).compute;
    CHECK((both.*pass).compute > least);
    CHECK((both.*pass).compute < 1.2 * least);  // the projection has 2 h^2 of the block's 13 h^2 and more
  }
  CHECK(both.rebuild_full.compute == block.rebuild_full.compute);
  CHECK(of_last_block(modules, prices_of(modules, layout)).forward.compute == block.forward.compute);
}

TEST_CASE("the head's rank has the modules' parameters, and in a pipeline a copy of the embedding's table") {
  const ClusterSpec cluster = preset_cluster("h100:8");
  const ModelSpec model = preset_model("llama-3.2-1b"), more = with_module("llama-3.2-1b");
  Pricing plain(model, cluster, kShortSequences), modules(more, cluster, kShortSequences);
  const auto added = [&](const Layout& layout) {
    return of_head(modules, modules.layer_states(layout)).parameters -
           of_head(plain, plain.layer_states(layout)).parameters;
  };
  const std::int64_t own = model_parameter_count(more) - model_parameter_count(model);
  CHECK(added({.data = 8}) == own);
  CHECK(added({.data = 4, .pipeline = 2}) == own + modules.model().vocab * model.hidden);
  const Layout layout{.data = 8};
  const LayerFootprint &head = of_head(plain, plain.layer_footprints(layout)),
                       &both = of_head(modules, modules.layer_footprints(layout));
  CHECK(both.parameters - head.parameters == own);
  CHECK(both.kept_bytes > 2 * head.kept_bytes);
}

TEST_CASE("a step's FLOPs are those of the module's parameters, its logits and its attention") {
  const ModelSpec model = preset_model("llama-3.2-1b"), more = with_module("llama-3.2-1b");
  const double tokens = 8 * 512;
  const auto own = static_cast<double>(model_parameter_count(more) - model_parameter_count(model));
  const double logits = static_cast<double>(model.vocab * model.hidden);
  const double attention = 4.0 * static_cast<double>(model.heads * model.head_size) * 512;
  CHECK(model_flops_per_step(more, kShortSequences) - model_flops_per_step(model, kShortSequences) ==
        doctest::Approx(tokens * (6 * (own + logits) + 3 * attention)).epsilon(1e-9));
}

}  // namespace plumb::test
