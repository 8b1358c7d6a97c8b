#include "schedules/generators/catalogue.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedules/error.h"
#include "schedules/generators/fitted.h"
#include "schedules/generators/generators.h"
#include "schedules/generators/spellings.h"
#include "schedules/limits.h"
#include "schedules/nearest_name.h"

namespace plumb { inline namespace schedules {
namespace {

void require_at_least_one(int value, std::string_view what) {
  if (value < 1) throw ScheduleError(fmt::format("{} {} cannot be scheduled: give 1 or more", value, what));
}

/// Throws ScheduleError if a parameter is given that the schedule would ignore.
void refuse_ignored(const CatalogueEntry& entry, const ScheduleParameters& parameters) {
  struct Parameter {
    bool is_given;
    bool CatalogueEntry::*is_taken;
    std::string_view what;
  };
  for (const auto& [is_given, is_taken, what] :
       {Parameter{parameters.group != 0, &CatalogueEntry::takes_group, "group of micro-batches"},
        Parameter{parameters.batch != 0, &CatalogueEntry::takes_batch, "batch between optimizer steps"},
        Parameter{parameters.vertical_sync, &CatalogueEntry::takes_vertical_sync, "vertical sync"},
        Parameter{parameters.node_ranks != 0, &CatalogueEntry::takes_node_ranks, "ranks of a node"},
        Parameter{parameters.memory_ratio != 1, &CatalogueEntry::takes_memory, "multiple of memory"}}) {
    if (!is_given || entry.*is_taken) continue;
    std::vector<std::string_view> takers;
    for (const CatalogueEntry& other : catalogue()) {
      if (other.*is_taken) takers.push_back(other.name);
    }
    throw ScheduleError(
        fmt::format("{} has no {}: leave it out, or use {}", entry.name, what, fmt::join(takers, " or ")));
  }
}

}  // namespace

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> kEntries = {
      {.name = "naive",
       .origin = "model parallelism without a pipeline",
       .constraint = "any m",
       .bubble = "m(p-1)(F+B)",
       .activations = "1",
       .make = naive_schedule},
      {.name = "gpipe",
       .origin = "Huang et al. 2019",
       .constraint = "any m",
       .bubble = "(p-1)(F+B)",
       .activations = "m",
       .repeats = false,
       .make = gpipe_schedule},
      {.name = "1f1b",
       .origin = "PipeDream-Flush, Narayanan et al. 2021; DAPPLE, Fan et al. 2021",
       .constraint = "any m",
       .bubble = "(p-1)(F+B)",
       .activations = "min(p-r, m)",
       .make = one_f_one_b_schedule},
      {.name = "eager-1f1b",
       .origin = "Zhuang et al. 2023 (Alpa)",
       .constraint = "any m",
       .bubble = "(p-1)(F+B)",
       .activations = "min(2(p-r)-1, m)",
       .make = eager_one_f_one_b_schedule},
      {.name = "interleaved",
       .origin = "Megatron-LM, Narayanan et al. 2021",
       .constraint = "any m; best where p divides m",
       .bubble = "(p-1)(F+B)/v where p divides m",
       .activations = "min(mv, 2(p-1-r) + (v-1)g + 1) chunks, g the largest group",
       .takes_chunks = true,
       .takes_group = true,
       .make = interleaved_schedule},
      {.name = "bfs",
       .origin = "Lamy-Poirier 2022; PyTorch's LoopedBFS",
       .constraint = "any m; best where m >= p",
       .bubble = "(p-1)(F+B)/v where m >= p",
       .activations = "mv chunks",
       .takes_chunks = true,
       .repeats = false,
       .make = breadth_first_schedule},
      {.name = "zb-h1",
       .origin = "Qi et al. 2024",
       .constraint = "any m; splits the backward",
       .bubble = "(p-1)(F+I-W) where m >= p and F, I >= W",
       .activations = "min(p, m)",
       .make = zb_h1_schedule},
      {.name = "zb-h2",
       .origin = "Qi et al. 2024",
       .constraint = "any m; best where m >= 2p-1; splits the backward",
       .bubble = "span (p-1)(F+I-2W), makespan (p-1)(F + max(0, I-2W)), where m >= 2p-1 and F, I >= W",
       .activations = "min(2p-1, m)",
       .make = zb_h2_schedule},
      {.name = "zb-auto",
       .origin = "Qi et al. 2024 (ZB-1p, ZB-1.5p, ZB-2p)",
       .constraint = "any m; splits the backward; made for given costs and memory",
       .bubble = "no formula: the synthesis states its lower bound",
       .activations = "at most min(kp, m), k the memory ratio (1, 1.5, 2)",
       .takes_memory = true,
       .repeats = false,
       .made_for_costs = true,
       .make = zb_auto_schedule},
      {.name = "izb",
       .origin = "PyTorch's InterleavedZeroBubble, 2024",
       .constraint = "any m; best where p divides m; splits the backward",
       .bubble = "(p-1)(F+I-W)/v where p divides m and F = I = W",
       .activations = "min(mv, (v-1)g + p) chunks, g the largest group",
       .takes_chunks = true,
       .takes_group = true,
       .make = interleaved_zero_bubble_schedule},
      {.name = "seq1f1b",
       .origin = "Sun et al. 2024",
       .constraint = "any m; k slices of equal cost",
       .bubble = "(p-1)(F+B)/k where m >= p",
       .activations = "min(p-r-1+k, mk) slices",
       .takes_slices = true,
       .make = seq1f1b_schedule},
      {.name = "terapipe",
       .origin = "Li et al. 2021",
       .constraint = "any m; k slices of equal cost",
       .bubble = "(p-1)(F+B)/k",
       .activations = "mk slices",
       .takes_slices = true,
       .repeats = false,
       .make = terapipe_schedule},
      {.name = "svpp",
       .origin = "MEPipe, Sun et al. 2025",
       .constraint = "any m; best where groups of p slices or more divide m; k slices of equal cost",
       .bubble = "(p-1)(F+B)/(vk) where groups of ceil(p/k) micro-batches divide m",
       .activations = "min(mvk, (v-1)gk + p-1-r+k) slices of a chunk, g the largest group",
       .takes_chunks = true,
       .takes_slices = true,
       .repeats = false,
       .make = svpp_schedule},
      {.name = "slimpipe",
       .origin = "Li et al. 2025",
       .constraint = "any m; best where p divides k, the slices, which are of equal cost",
       .bubble = "(p-1)(F+B)/(vk) where p divides k",
       .activations = "min(mvk, vk + 2(p-1-r)) slices of a chunk where k >= p",
       .takes_chunks = true,
       .takes_slices = true,
       .repeats = false,
       .make = slimpipe_schedule},
      {.name = "vocab-1",
       .origin = "Yeung et al. 2024, Algorithm 1",
       .constraint = "any m; the output layer is cut over the ranks: simulate it with --costs",
       .bubble = "no formula; none per micro-batch where S and T together are no longer than B",
       .activations = "min(p-r+2, m), and 2 of the output layer's shard",
       .chunks = 2,
       .made_for_costs = true,
       .unpriced = "cuts the output layer into shards",
       .make = vocab_1_schedule},
      {.name = "vocab-2",
       .origin = "Yeung et al. 2024, Algorithm 2",
       .constraint = "any m; the output layer is cut over the ranks: simulate it with --costs",
       .bubble = "no formula; none per micro-batch where S is no longer than B",
       .activations = "min(p-r+1, m), and 2 of the output layer's shard",
       .chunks = 2,
       .made_for_costs = true,
       .unpriced = "cuts the output layer into shards",
       .make = vocab_2_schedule},
      {.name = "weipipe",
       .origin = "Lin et al. 2025 (WeiPipe-Interleave)",
       .constraint = "any m; best where p divides m; weights travel: simulate it with --costs",
       .bubble = "0; floor(3(p+1)/2) w where a part's weights take w, p > 2 divides m and 2w <= F, B",
       .activations = "p: one micro-batch in all model parts",
       .unpriced = "sends weights from rank to rank",
       .make = weipipe_schedule},
      {.name = "tawpipe",
       .origin = "Wu & Chen 2025",
       .constraint =
           "any m; best where p divides m; nodes of n ranks, n divides p; weights travel: simulate it with --costs",
       .bubble = "0 on 1 and 2 nodes, (g-2)F on g at F=B; 2w on one, (g-2)F+5w on g of 3 ranks or more at F=B, 3w <= F",
       .activations = "p: one micro-batch in all model parts",
       .takes_node_ranks = true,
       .unpriced = "sends weights from rank to rank",
       .make = tawpipe_schedule},
      {.name = "forward-only",
       .origin = "inference",
       .constraint = "any m; no backward",
       .bubble = "(p-1)F",
       .activations = "1",
       .make = forward_only_schedule},
      {.name = "pipedream",
       .origin = "PipeDream, Narayanan et al. 2019",
       .constraint = "any m; asynchronous, stashes weights",
       .bubble = "0 in the steady state",
       .activations = "min(p-r, m)",
       .takes_vertical_sync = true,
       .repeats = false,
       .make = pipedream_schedule},
      {.name = "pipedream-2bw",
       .origin = "Narayanan et al. 2021 (memory-efficient pipeline-parallel DNN training)",
       .constraint = "batches of p-1 micro-batches or more; asynchronous, two weight versions",
       .bubble = "0 in the steady state",
       .activations = "min(p-r, m)",
       .takes_batch = true,
       .repeats = false,
       .make = pipedream_2bw_schedule},
      {.name = "zb-v",
       .origin = "Qi et al. 2024",
       .constraint = "any m; best where m >= 2p-1",
       .bubble = "(p-1)F/2 at F=I=W where m >= 2p-1; none of the span",
       .activations = "2p chunks where m >= 2p-1, otherwise fewer",
       .chunks = 2,
       .made_for_costs = true,
       .make = zb_v_schedule},
      {.name = "v-half",
       .origin = "Qi et al. 2024, controllable memory",
       .constraint = "any m",
       .bubble = "at most (3p-5)F/2 at F=I=W where p > 1, m >= p; (3p-7)F/2 where p > 2 is even",
       .activations = "at most p+2 chunks",
       .chunks = 2,
       .made_for_costs = true,
       .make = v_half_schedule},
      {.name = "v-min",
       .origin = "Qi et al. 2024, controllable memory",
       .constraint = "any m; best where F, I and W are nearly equal",
       .bubble = "at most (4p-5)F/2 (3 divides p: (4p-6)F/2) at F=I=W where p > 1, m >= p; far more where I > W",
       .activations = "at most 2 floor((p+4)/3) chunks",
       .chunks = 2,
       .made_for_costs = true,
       .make = v_min_schedule},
      {.name = "v-1f1b",
       .origin = "Sea AI Lab 2024",
       .constraint = "any m",
       .bubble = "at most 5(p-1)F/2 at B=2F where m >= p",
       .activations = "at most 2 floor(2p/3) + 2 chunks",
       .chunks = 2,
       .make = v_1f1b_schedule},
      {.name = "dualpipev",
       .origin = "DeepSeek-AI and Sea AI Lab 2025",
       .constraint = "any m; best where m >= 2p",
       .bubble = "(p-1)F at F=I=W where m >= 2p, if overlap gains nothing",
       .activations = "2p+1 chunks where m >= 2p, otherwise fewer",
       .chunks = 2,
       .pairs = true,
       .make = dualpipev_schedule},
      {.name = "stp",
       .origin = "Qi et al. 2025, synergistic tensor and pipeline parallelism",
       .constraint = "any m; best where m >= 3p-1",
       .bubble = "(p-1)F/2 at F=I=W where m >= 3p-1, if overlap gains nothing",
       .activations = "3p + max(1, r) chunks where m >= 3p-1, otherwise fewer",
       .chunks = 2,
       .pairs = true,
       .make = stp_schedule},
      {.name = "dualpipe",
       .origin = "DeepSeek-V3, DeepSeek-AI 2024",
       .constraint = "p even, m >= 2",
       .bubble = "(p-2)F at F=I=W, m even, m >= 2p, if overlap gains nothing",
       .activations = "p+1, over both copies",
       .both_ends = true,
       .pairs = true,
       .make = dualpipe_schedule},
      {.name = "chimera",
       .origin = "Li and Hoefler 2021",
       .constraint = "p even, m >= 2",
       .bubble = "(p-2)F at F=B where p divides m; far more at B=2F",
       .activations = "at most p, over both copies, where p divides m; otherwise p+1",
       .both_ends = true,
       .make = chimera_schedule},
      {.name = "gems",
       .origin = "Jain et al. 2020",
       .constraint = "p even, m >= 2",
       .bubble = "(p-1)(F+mB) where B >= F",
       .activations = "1, over both copies",
       .both_ends = true,
       .make = gems_schedule},
      {.name = "bpipe",
       .origin = "Kim et al. 2023",
       .constraint = "any m",
       .bubble = "(p-1)(F+B), if evicting is hidden",
       .activations = "at most ceil((p+2)/2), its partner's among them",
       .make = bpipe_schedule},
      {.name = "hanayo",
       .origin = "Liu et al. 2023",
       .constraint = "any m; W waves are v = 2W chunks",
       .bubble = "(p-1)(F+B)/v at F=B where p divides m; more at B=2F",
       .activations = "min(p, m) v chunks",
       .takes_chunks = true,
       .make = hanayo_schedule},
      {.name = "helixpipe",
       .origin = "Zhang et al. 2025",
       .constraint =
           "any m; best where 2p divides m; v layers a rank, whose attention is apart: simulate it with --costs",
       .bubble = "(p-1)(F+B) of what stands between two attentions where m = p; at most twice that where 2p divides m",
       .activations = "2mv parts of layers, and m more on rank 0",
       .takes_chunks = true,
       .repeats = false,
       .unpriced = "divides layers into model parts",
       .make = helixpipe_schedule},
  };
  return kEntries;
}

const CatalogueEntry& catalogue_entry(std::string_view name) {
  const auto it = std::ranges::find(catalogue(), schedule_spelled(name), &CatalogueEntry::name);
  if (it != catalogue().end()) return *it;
  if (const std::string_view advice = schedule_not_held(name); !advice.empty()) {
    throw ScheduleError(
        fmt::format("there is no schedule \"{}\"; {} (`plumb schedule list` names them all)", name, advice));
  }
  std::vector<std::string> names;
  for (const CatalogueEntry& entry : catalogue()) names.emplace_back(entry.name);
  const std::string nearest = nearest_name(name, names);
  throw ScheduleError(fmt::format("there is no schedule \"{}\": {}`plumb schedule list` names them all", name,
                                  nearest.empty() ? "" : fmt::format("did you mean \"{}\"? ", nearest)));
}

int period_of(std::string_view name, const ScheduleParameters& parameters) {
  const CatalogueEntry& entry = catalogue_entry(name);
  const int stages = parameters.ranks * (entry.takes_chunks ? parameters.chunks : entry.chunks);
  if (!entry.repeats || (entry.made_for_costs && !has_equal_costs(parameters, stages))) return 0;
  return parameters.group > 0 ? parameters.group : parameters.ranks;
}

const CatalogueEntry& checked_entry(std::string_view name, const ScheduleParameters& parameters) {
  const CatalogueEntry& entry = catalogue_entry(name);
  require_at_least_one(parameters.ranks, "ranks");
  require_at_least_one(parameters.microbatches, "micro-batches");
  require_at_least_one(parameters.chunks, "chunks");
  if (parameters.chunks > 1 && !entry.takes_chunks && parameters.chunks != entry.chunks) {
    throw ScheduleError(fmt::format("{} runs {} a rank, not {}: leave the chunks out, or use interleaved", entry.name,
                                    entry.chunks == 1 ? "one chunk" : "two chunks", parameters.chunks));
  }
  require_at_least_one(parameters.slices, "slices");
  if (parameters.slices > 1 && !entry.takes_slices) {
    throw ScheduleError(
        fmt::format("{} does not cut sequences into {} slices: leave the slices out, or use seq1f1b, svpp or slimpipe",
                    entry.name, parameters.slices));
  }
  if (parameters.group < 0) {
    throw ScheduleError(fmt::format("a group of {} micro-batches cannot be: give 1 or more, or 0 for as many as ranks",
                                    parameters.group));
  }
  if (parameters.batch < 0) {
    throw ScheduleError(fmt::format("a batch of {} micro-batches cannot be: give 1 or more, or 0 for as many as ranks",
                                    parameters.batch));
  }
  if (parameters.node_ranks < 0)
    throw ScheduleError(fmt::format("{} ranks of a node cannot be: give 1 or more", parameters.node_ranks));
  refuse_ignored(entry, parameters);
  const double forwards = static_cast<double>(parameters.ranks) * parameters.microbatches *
                          std::max(parameters.chunks, entry.chunks) * parameters.slices;
  if (forwards > kMostForwards) {
    throw ScheduleError(fmt::format(
        "{} micro-batches on {} ranks make a schedule of {:.3g} forwards, too long to write down: give fewer than {}",
        parameters.microbatches, parameters.ranks, forwards, kMostForwards));
  }
  return entry;
}

Schedule make_schedule(std::string_view name, const ScheduleParameters& parameters) {
  return checked_entry(name, parameters).make(parameters);
}

}}  // namespace plumb::schedules
