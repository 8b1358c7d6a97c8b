#include "schedules/generators/spellings.h"

#include <algorithm>
#include <array>
#include <string>

#include "schedules/generators/catalogue.h"
#include "schedules/spelling.h"

namespace plumb { inline namespace schedules {
namespace {

// Names from papers, Megatron-LM, PyTorch (torch.distributed.pipelining), Alpa, PaddlePaddle, ColossalAI and
// torchtitan.
constexpr std::array kSpellings = {
    Spelling{"naivemp", "naive"},
    Spelling{"modelparallel", "naive"},
    Spelling{"modelparallelism", "naive"},
    Spelling{"sequential", "naive"},
    Spelling{"afab", "gpipe"},
    Spelling{"allforwardallbackward", "gpipe"},
    Spelling{"fthenb", "gpipe"},
    Spelling{"filldrain", "gpipe"},
    Spelling{"fillanddrain", "gpipe"},
    Spelling{"tokenpipe", "terapipe"},
    Spelling{"tokenlevelpipeline", "terapipe"},
    Spelling{"mepipe", "svpp"},
    Spelling{"sequencevirtualpipelineparallelism", "svpp"},
    Spelling{"dapple", "1f1b"},
    Spelling{"trainschedule", "1f1b"},
    Spelling{"forwardbackwardpipeliningwithoutinterleaving", "1f1b"},
    Spelling{"forwardbackwardpipeliningwithinterleaving", "interleaved"},
    Spelling{"onefoneb", "1f1b"},
    Spelling{"1f1bflush", "1f1b"},
    Spelling{"1f1bnonint", "1f1b"},
    Spelling{"1f1bnoninterleaved", "1f1b"},
    Spelling{"noninterleaved", "1f1b"},
    Spelling{"noninterleaved1f1b", "1f1b"},
    Spelling{"pipedreamflush", "1f1b"},
    Spelling{"1f1beager", "eager-1f1b"},
    Spelling{"1f1boverlapfriendly", "eager-1f1b"},
    Spelling{"overlapfriendly", "eager-1f1b"},
    Spelling{"1f1bi", "interleaved"},
    Spelling{"1f1bint", "interleaved"},
    Spelling{"1f1binterleaved", "interleaved"},
    Spelling{"interleaved1f1b", "interleaved"},
    Spelling{"interleave", "interleaved"},
    Spelling{"depthfirst", "interleaved"},
    Spelling{"dfs", "interleaved"},
    Spelling{"loopeddfs", "interleaved"},
    Spelling{"loopeddepthfirst", "interleaved"},
    Spelling{"virtualpipeline", "interleaved"},
    Spelling{"vpp", "interleaved"},
    Spelling{"breadthfirst", "bfs"},
    Spelling{"loopedbfs", "bfs"},
    Spelling{"loopedbreadthfirst", "bfs"},
    Spelling{"zb1p", "zb-auto"},
    Spelling{"zerobubbleh1", "zb-h1"},
    Spelling{"zerobubbleh2", "zb-h2"},
    Spelling{"interleavedzb", "izb"},
    Spelling{"interleavedzerobubble", "izb"},
    Spelling{"zerobubblev", "zb-v"},
    Spelling{"zbvzerobubble", "zb-v"},
    Spelling{"1f1bv", "v-1f1b"},
    Spelling{"cutinhalf", "dualpipev"},
    Spelling{"synergistictensorandpipelineparallelism", "stp"},
    Spelling{"2bw", "pipedream-2bw"},
    Spelling{"async1f1b", "pipedream"},
    Spelling{"1f1basync", "pipedream"},
    Spelling{"weightpipeline", "weipipe"},
    Spelling{"weipipeinterleave", "weipipe"},
    Spelling{"topologyawareweightpipeline", "tawpipe"},
    Spelling{"wave", "hanayo"},
    Spelling{"wavepipeline", "hanayo"},
    Spelling{"attentionparallelpipeline", "helixpipe"},
    Spelling{"inference", "forward-only"},
    Spelling{"inferenceschedule", "forward-only"},
    Spelling{"evaluation", "forward-only"},
};

// Sources: Yang et al. 2021 (PipeMare), Sun et al. 2024 (AdaPipe), Liu et al. 2025 (Mario), Wu et al. 2024
// (BitPipe), Lin et al. 2025 (WeiPipe-Naive, WeiPipe-Zero-Bubble), Wan et al. 2025 (PipeOffload), Qi et al.
// 2024 (ZB-2p; V-ZB), Guan et al. 2019 (XPipe), Zhang et al. 2023 (MixPipe), Yang et al. 2022 (WPipe), Zhu et
// al. 2025 (Mist), Chen et al. 2023 (AvgPipe), Lai et al. 2023 (Merak), Megatron-LM (combined_1f1b), Llama
// Team 2024 (section 3.3.2), Jiang et al. 2024 (DynaPipe), Jeon et al. 2025 (GraphPipe), Yeung et al. 2024
// (vocabulary parallelism).
constexpr std::array kNotHeld = {
    Spelling{"zb15p", "it is zb-auto with --memory 1.5"},
    Spelling{"zb2p", "it is zb-auto with --memory 2"},
    Spelling{"zerobubble", "several are called so: choose zb-h1, zb-h2, zb-auto, zb-v or izb"},
    Spelling{"zb", "several are called so: choose zb-h1, zb-h2, zb-auto, zb-v or izb"},
    Spelling{"pipemare", "it is the order of pipedream without stashed weights: take that for its time"},
    Spelling{"xpipe", "it is an order of pipedream that predicts its weights: take that for its time"},
    Spelling{"vzb", "zb-v is nearest: as many activations, and no bubble either"},
    Spelling{"adapipe", "it is 1f1b with recomputation and layers chosen by stage: take that, with --split"},
    Spelling{"mario", "it is an order with full recomputation in its gaps: take 1f1b or chimera with recomputation"},
    Spelling{"bitpipe", "it is interleaved in both directions on a V: chimera and hanayo have a half of it each"},
    Spelling{"mixpipe", "it is a pipeline from both ends: chimera is nearest"},
    Spelling{"weipipenaive", "it is weipipe with forwards and backwards apart: weipipe interleaves them"},
    Spelling{"weipipezerobubble", "it is weipipe with split backwards, which is not held: take weipipe"},
    Spelling{"vocab1f1b", "there are two: vocab-2 has one collective a micro-batch, vocab-1 two"},
    Spelling{"vocabularyparallel1f1b", "there are two: vocab-2 has one collective a micro-batch, vocab-1 two"},
    Spelling{"vocabularyparallelism", "there are two: vocab-2 has one collective a micro-batch, vocab-1 two"},
    Spelling{"wpipe", "it is pipedream-2bw on two groups of layers a rank: take that for its time"},
    Spelling{"avgpipe", "it is 1f1b with fewer forwards ahead in several pipelines: take 1f1b with replicas (dp)"},
    Spelling{"merak", "it is 1f1b with recomputation moved into its gaps: take that, with recomputation"},
    Spelling{"mist", "it is 1f1b with recomputation, offloading and ZeRO chosen by stage: `plumb plan` chooses them"},
    Spelling{"chimeradirect", "chimera is made for the micro-batches that there are: take that"},
    Spelling{"forwarddoubling", "it is a way of chimera for many micro-batches: take chimera"},
    Spelling{"backwardhalving", "it is a way of chimera for many micro-batches: take chimera"},
    Spelling{"combined1f1b", "it is interleaved with one more forward ahead: dualpipev overlaps pairs, as it does"},
    Spelling{"llama3", "it is interleaved with groups of any size: take that, with --group"},
    Spelling{"dynapipe", "its micro-batches are of unequal length, its order is 1f1b: take that"},
    Spelling{"graphpipe", "its stages are no chain: take 1f1b"},
    Spelling{"pipeoffload",
             "it is interleaved with activations in the host's memory: take that, with --offload-stages"},
};

}  // namespace

std::string_view schedule_spelled(std::string_view text) {
  std::string plain = letters_and_digits(text);
  // PyTorch's classes begin with this word: ScheduleInterleaved1F1B.
  if (constexpr std::string_view kClass = "schedule"; plain.starts_with(kClass)) plain.erase(0, kClass.size());
  if (plain.empty()) return {};
  for (const CatalogueEntry& entry : catalogue()) {
    if (letters_and_digits(entry.name) == plain) return entry.name;
  }
  return meaning(kSpellings, plain);
}

std::string_view schedule_not_held(std::string_view text) {
  return meaning(kNotHeld, letters_and_digits(text));
}

}}  // namespace plumb::schedules
