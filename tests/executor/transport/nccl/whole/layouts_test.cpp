// Training over every schedule and layout up to 64 ranks: the ranks agree on their calls, which cannot deadlock with
// room for the kernels of one group. A sample of those up to 16 ranks runs in passing; PLUMB_ALL_ORDERS=1 runs all,
// PLUMB_ALL_ORDERS=N runs N of all.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>

#include "executor/training/device/run_device.h"
#include "executor/training/training_plan.h"
#include "schedules/error.h"
#include "tests/executor/small_model.h"
#include "tests/executor/transport/nccl/order/check_nccl_order.h"
#include "tests/executor/transport/nccl/order/training_order.h"

namespace plumb::test {
namespace {

/// Transformer blocks of one shape that every division here fits.
std::vector<Layer> wide_blocks(int blocks, bool experts) {
  TransformerLayer block{.hidden = 64, .heads = 64, .kv_heads = 64, .head_size = 2, .ffn = 64};
  if (experts) {
    block.experts = 64;
    block.experts_per_token = 2;
    block.expert_ffn = 64;
  }
  std::vector<Layer> model = {EmbeddingLayer{.vocab = 64, .hidden = 64}};
  model.insert(model.end(), static_cast<std::size_t>(blocks), block);
  model.push_back(HeadLayer{.vocab = 64, .hidden = 64, .tied = true});
  return model;
}

constexpr int kMostRanks = 64, kMostInPassing = 16;

struct LaunchLayout {
  const CatalogueEntry* schedule = nullptr;
  int pipeline = 1, tensor = 1, context = 1, data = 1, expert = 1, zero = 0;
  bool layerwise = false, sequence_parallel = false, ulysses = false;
};

std::string launch_text(const LaunchLayout& layout) {
  return std::string(layout.schedule->name) + " pp " + std::to_string(layout.pipeline) + " tp " +
         std::to_string(layout.tensor) + " cp " + std::to_string(layout.context) + " dp " +
         std::to_string(layout.data) + " ep " + std::to_string(layout.expert) + " zero " + std::to_string(layout.zero);
}

RunSpec spec_of_launch(const LaunchLayout& layout) {
  const CatalogueEntry& entry = *layout.schedule;
  const int chunks = entry.takes_chunks ? 2 : entry.chunks;
  const int microbatches = std::max(4, layout.pipeline);
  const Schedule order = make_schedule(
      entry.name,
      {.ranks = layout.pipeline, .microbatches = microbatches, .chunks = chunks, .slices = entry.takes_slices ? 2 : 1});
  LoweringOptions options{.data = {.enabled = layout.data * layout.context > 1, .zero = layout.zero}};
  int parts = 0;
  for (const StagePlace& place : order.stages) parts = std::max(parts, place.model_part + 1);
  RunSpec spec = spec_of_lowered(wide_blocks(std::max(1, parts - 2), layout.expert > 1), lower(order, options), 1);
  spec.grid = {.tensor = layout.tensor,
               .context = layout.context,
               .expert = layout.expert,
               .data = layout.data,
               .pipeline = layout.pipeline};
  spec.zero = layout.zero;
  spec.layerwise = layout.layerwise;
  spec.sequence_parallel = layout.sequence_parallel;
  spec.context_attention = layout.ulysses ? ContextAttention::kUlysses : ContextAttention::kRing;
  spec.sequence = 256;
  spec.text.assign(4096, 1);
  return spec;
}

/// Returns the layouts of 2 to 64 ranks that exist, in one order.
std::vector<LaunchLayout> all_layouts() {
  std::vector<LaunchLayout> layouts;
  for (const CatalogueEntry& entry : catalogue())
    for (int pipeline = 1; pipeline <= kMostRanks; pipeline *= 2)
      for (int tensor = 1; pipeline * tensor <= kMostRanks; tensor *= 2)
        for (int context = 1; pipeline * tensor * context <= kMostRanks; context *= 2)
          for (int data = 1; pipeline * tensor * context * data <= kMostRanks; data *= 2)
            for (const int expert : {1, context * data})
              for (const int zero : {0, 1, 2, 3}) {
                const bool has_copies = entry.both_ends;
                if (pipeline * tensor * context * data == 1 || (expert == 1 && context * data == 1 && zero > 0) ||
                    (expert > 1 && context * data == 1) || (zero > 0 && context * data == 1) ||
                    (has_copies && (zero > 1 || pipeline == 1)))
                  continue;
                layouts.push_back({.schedule = &entry,
                                   .pipeline = pipeline,
                                   .tensor = tensor,
                                   .context = context,
                                   .data = data,
                                   .expert = expert,
                                   .zero = zero,
                                   .layerwise = zero >= 2 && (pipeline + data) % 3 == 0,
                                   .sequence_parallel = tensor > 1 && context * data % 3 != 2,
                                   .ulysses = context > 1 && (pipeline + tensor) % 3 == 0});
              }
  return layouts;
}

}  // namespace

TEST_CASE("the calls of every schedule and layout up to 64 ranks agree and cannot deadlock") {
  std::vector<LaunchLayout> layouts = all_layouts();
  const std::size_t all = layouts.size();
  const char* wanted = std::getenv("PLUMB_ALL_ORDERS");
  if (wanted == nullptr)
    std::erase_if(layouts, [](const LaunchLayout& one) {
      return one.pipeline * one.tensor * one.context * one.data > kMostInPassing;
    });
  if (const std::size_t count = wanted == nullptr ? 32 : std::strtoull(wanted, nullptr, 10); count > 1) {
    std::ranges::shuffle(layouts, std::mt19937(1));
    layouts.resize(std::min(layouts.size(), count));
    for (const CatalogueEntry& entry : catalogue()) layouts.push_back({.schedule = &entry, .pipeline = 4, .data = 2});
  }
  std::int64_t calls = 0;
  std::size_t checked = 0;
  int most_channels = 0;
  for (const LaunchLayout& layout : layouts) {
    CAPTURE(launch_text(layout));
    NcclOrder order;
    try {
      order = training_order(spec_of_launch(layout));
    } catch (const InputError&) {
      continue;  // a schedule or a device refuses it: an odd number of ranks, ZeRO 2 in asynchronous schedules, EVICT
    }
    const NcclLimits least{.channels = most_kernels_of_a_group(order), .queue_depth = 1024};
    for (const std::string& fault : check_nccl_order(order, least)) FAIL_CHECK(fault);
    most_channels = std::max(most_channels, least.channels);
    for (const RankOrder& rank : order.ranks)
      calls += std::ranges::count_if(rank.calls, [](const OrderedCall& call) { return call.kind.has_value(); });
    ++checked;
  }
  MESSAGE(checked, " of ", all, " layouts, ", calls, " calls, at most ", most_channels, " channels");
  CHECK(checked > layouts.size() / 2);
  CHECK(most_channels <= 2);
  CHECK(calls > 40000);
}

}  // namespace plumb::test
