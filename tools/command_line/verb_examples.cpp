#include "tools/command_line/verb_examples.h"

#include <algorithm>
#include <array>
#include <utility>

namespace plumb { inline namespace tools {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 25> kExamples{{
    {"plumb models", "plumb models llama-3-8b"},
    {"plumb clusters", "plumb clusters h100"},
    {"plumb stacks", "plumb stacks megatron-core"},
    {"plumb plan", "plumb plan llama-3-8b h100:16 --global-batch 128 -o plan.json"},
    {"plumb simulate", "plumb simulate --schedule 1f1b -p 4 -m 8"},
    {"plumb memory", "plumb memory plan.json"},
    {"plumb whatif", "plumb whatif plan.json --vary network.bandwidth_gb_per_s=25,50,100"},
    {"plumb budget", "plumb budget llama-3-8b h100:512 --global-batch 512 --tokens 1e12 --deadline 30"},
    {"plumb export", "plumb export plan.json --to megatron-bridge -o run.py"},
    {"plumb compare", "plumb compare plan.json run.log"},
    {"plumb import", "plumb import run.py --model llama-3-8b --devices 16"},
    {"plumb score", "plumb score published/*.json"},
    {"plumb run", "plumb run plan.json --backend cpu --steps 3"},
    {"plumb validate", "plumb validate plan.json --backend cpu"},
    {"plumb calibrate", "plumb calibrate --backend cpu -o this-machine.json"},
    {"plumb partition", "plumb partition gpt2 h100:4 --global-batch 32"},
    {"plumb schedule list", "plumb schedule list"},
    {"plumb schedule make", "plumb schedule make interleaved -p 4 -m 8 -v 2 -o order.csv"},
    {"plumb schedule show", "plumb schedule show zb-h1 -p 4 -m 8"},
    {"plumb schedule check", "plumb schedule check order.csv"},
    {"plumb schedule convert", "plumb schedule convert order.csv -o order.json"},
    {"plumb schedule search", "plumb schedule search -p 4 -m 8 --costs f=1,i=1,w=1"},
    {"plumb trace info", "plumb trace info trace.json"},
    {"plumb trace compare", "plumb trace compare before.json after.json"},
    {"plumb completion", "plumb completion bash > ~/.local/share/bash-completion/completions/plumb"},
}};

}  // namespace

std::string_view example_of(std::string_view verb) {
  const auto found = std::ranges::find(kExamples, verb, &std::pair<std::string_view, std::string_view>::first);
  return found == kExamples.end() ? std::string_view() : found->second;
}

}}  // namespace plumb::tools
