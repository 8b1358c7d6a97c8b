#include <algorithm>
#include <array>

#include "planner/spec/huggingface/families.h"

namespace plumb { inline namespace planner {
namespace {

struct Meaning {
  std::string_view model_type;
  std::string_view text;
};

// These types are alike in all that bears on sizes and costs, or are the text models inside models of several media.
constexpr std::array kReadAs = {
    Meaning{"gemma3", "gemma3_text"},  Meaning{"llama4", "llama4_text"},
    Meaning{"qwen2_vl", "qwen2"},      Meaning{"qwen2_vl_text", "qwen2"},
    Meaning{"qwen2_5_vl", "qwen2"},    Meaning{"qwen2_5_vl_text", "qwen2"},
    Meaning{"qwen3_vl_text", "qwen3"}, Meaning{"qwen3_vl_moe_text", "qwen3_moe"},
    Meaning{"smollm3", "llama"},       Meaning{"xlm-roberta", "roberta"},
    Meaning{"camembert", "roberta"},   Meaning{"kimi_k2", "deepseek_v3"},
};

constexpr std::string_view kStateSpace =
    "has layers of linear attention or of a state space that no reader takes in: write its sizes as a Plumb model "
    "file, "
    "with a pattern of the layers and the mixer that comes nearest, or take a transformer or a Mamba-2";
constexpr std::string_view kTwoHalves =
    "has an encoder and a decoder: take one of the presets t5-small to t5-11b, or write it as a graph of layers";
constexpr std::string_view kNoText = "is no language model: write it as a graph of layers";

constexpr std::array kNotRead = {
    Meaning{"mamba", kStateSpace},   Meaning{"falcon_mamba", kStateSpace},
    Meaning{"rwkv", kStateSpace},    Meaning{"recurrent_gemma", kStateSpace},
    Meaning{"zamba", kStateSpace},   Meaning{"zamba2", kStateSpace},
    Meaning{"bamba", kStateSpace},   Meaning{"granitemoehybrid", kStateSpace},
    Meaning{"minimax", kStateSpace}, Meaning{"kimi_linear", kStateSpace},
    Meaning{"t5", kTwoHalves},       Meaning{"mt5", kTwoHalves},
    Meaning{"umt5", kTwoHalves},     Meaning{"bart", kTwoHalves},
    Meaning{"mbart", kTwoHalves},    Meaning{"pegasus", kTwoHalves},
    Meaning{"whisper", kTwoHalves},  Meaning{"marian", kTwoHalves},
    Meaning{"vit", kNoText},         Meaning{"clip", kNoText},
    Meaning{"resnet", kNoText},      Meaning{"wav2vec2", kNoText},
};

std::string_view meaning(const auto& meanings, std::string_view model_type) {
  const auto it = std::ranges::find(meanings, model_type, &Meaning::model_type);
  return it == std::end(meanings) ? std::string_view{} : it->text;
}

}  // namespace

std::string_view family_read_as(std::string_view model_type) {
  return meaning(kReadAs, model_type);
}

std::string_view why_not_read(std::string_view model_type) {
  return meaning(kNotRead, model_type);
}

}}  // namespace plumb::planner
