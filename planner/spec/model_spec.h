#pragma once
// A model: a decoder-only transformer given by its sizes, or any other network given as a graph of layers
// (graph/layer_graph.h).
//
//   ModelSpec model = parse_model(text_of("tools/specs/models/llama-3-8b.json"), "llama-3-8b.json");
//   model_parameter_count(model) == 8'030'261'248
//   model_layers(model).size()   == 34          // embedding, 32 transformer layers, head

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "kernels/layer.h"
#include "planner/graph/layer_graph.h"
#include "planner/spec/layer_pattern.h"

namespace plumb { inline namespace planner {

struct ModelSpec {
  std::string name;
  std::string source;  ///< place where the sizes are published
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_size = 0;
  std::int64_t ffn = 0;
  std::int64_t vocab = 0;
  std::int64_t sequence = 0;   ///< tokens of a training sequence where the training does not say; 0: not known
  std::int64_t positions = 0;  ///< rows of a learned position table; 0: none
  NormKind norm = NormKind::kRmsNorm;
  double norm_epsilon = 1e-5;
  MlpKind mlp = MlpKind::kSwiglu;
  bool exact_gelu = false;
  bool qkv_bias = false;
  bool linear_bias = false;
  bool parallel_residual = false;
  std::int64_t rotary_size = 0;  ///< leading channels of each head that RoPE turns; 0: no RoPE
  double rope_theta = 10000.0;
  std::int64_t window = 0;  ///< sliding attention window in tokens; 0: the whole past
  bool sinks = false;
  double attention_softcap = 0;
  double logit_softcap = 0;
  /// Period of layers whose last one sees the whole past; 0: all layers have the window.
  std::int64_t full_attention_every = 0;
  bool tied_embeddings = false;
  double dropout = 0;  ///< rate for attention probabilities and residual branches; 0: none
  // Mixture of experts (kernels/layer.h), behind the first `dense_layers` in every `experts_every`-th layer of all, the
  // last of each period; 0 experts: none.
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t expert_groups = 1;
  std::int64_t groups_per_token = 1;
  std::int64_t expert_ffn = 0;
  std::int64_t shared_ffn = 0;
  std::int64_t dense_layers = 0;
  std::int64_t experts_every = 1;
  bool renormalised = true;
  double capacity_factor = 0;
  double balance_loss = 0;
  RouterKind router = RouterKind::kSoftmax;
  bool router_bias = false;
  bool selection_bias = false;
  bool expert_bias = false;
  // Multi-head latent attention (kernels/layer.h); kv_rank 0: none.
  std::int64_t query_rank = 0;
  std::int64_t kv_rank = 0;
  std::int64_t value_size = 0;
  bool output_gate = false;
  QueryKeyNorms query_key_norms = QueryKeyNorms::kNone;
  /// Mixes tokens in the layers that have no attention, or beside it. Without a pattern all layers are it alone, and
  /// heads, kv_heads, head_size and ffn are 0.
  StateMixer states;
  /// Modules of multi-token prediction behind the last layer (DeepSeek-AI 2024, 2412.19437, section 2.2). A module norms
  /// the stream and the next token's embedding, projects both to the stream's width, passes a block like the model's
  /// last, and predicts one token more with a norm of its own and the model's tables.
  std::int64_t mtp_modules = 0;
  /// Parts of the layers of a period (spec/layer_pattern.h); empty: all have attention, and an MLP or experts.
  std::vector<LayerParts> pattern;
  /// A graph replaces the sizes above. Only `layers`, the number of its nodes, and `sequence` (1 where a sample is no
  /// sequence) are set beside it.
  std::optional<LayerGraph> graph;

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

/// Plumb's own executor pads the tables of a vocabulary to a multiple of so many rows, as Megatron does. Up to 8 tensor
/// ranks then have a multiple of 8: with GPT-2's 50257 rows, which no power of two divides, the three products of the
/// head took an H200 45 ms where those of 50304 take 3 ms (docs/hardware).
inline constexpr std::int64_t kOwnVocabMultiple = 64;

/// Returns the embedding, `layers` blocks and the head, whose tables are padded to a multiple of
/// `vocab_multiple` rows. Returns a graph's layers in order if the executor runs the graph, and none otherwise.
std::vector<Layer> model_layers(const ModelSpec& model, std::int64_t vocab_multiple = 1);

/// Returns what each layer is made of; nothing for a graph.
std::vector<LayerParts> layer_parts(const ModelSpec& model);

/// Returns true if a layer of that part is among the model's: has_part(model, &LayerParts::mlp).
bool has_part(const ModelSpec& model, bool LayerParts::*part);

/// Returns the number of trained parameters; a tied table counts once.
std::int64_t model_parameter_count(const ModelSpec& model);

/// Returns the parameters of one module of multi-token prediction besides its block and the model's tables: its
/// projection and three norms.
std::int64_t mtp_frame_parameters(const ModelSpec& model);

/// Returns the number of parameters that a token meets: of the routed experts, only those that its router picks.
std::int64_t active_parameter_count(const ModelSpec& model);

/// Returns true if the model's samples are sequences, whose number of tokens the training chooses.
bool has_sequence(const ModelSpec& model);

/// The JSON form of a graph is in graph/layer_graph.h. That of a transformer has every member by its name here ("norm":
/// "rms" or "layer", "mlp": "gelu" or "swiglu", "router": "softmax" or "sigmoid", "query_key_norms": "none", "each_head"
/// or "all_heads"). Defaults: `kv_heads` is `heads`, `head_size` is hidden / heads,
/// `rotary_size` is head_size unless there are learned positions, and the other optional keys are as above. `experts`
/// needs experts_per_token and expert_ffn, `groups_per_token` counts of `expert_groups` (all, if left out), `kv_rank` a value_size. `pattern` is the text of spec/layer_pattern.h; the keys
/// of attention, MLP and experts stand beside it where it names them, and a state mixer (spec/state_mixer_json.h) where
/// it has an M. A mixer without a pattern stands in the place of all of them. Reading throws SpecError with the place: an
/// unknown or missing key, a wrong type, a size below 1 or beyond any model, heads that kv_heads do not divide, a
/// rotary_size above head_size or odd, a pattern that does not divide the layers or lacks the sizes of its parts, more
/// experts a token than there are, more dense layers than layers. The figures of
/// shown_figures() may stand beside the sizes, and are refused where they do not follow from them.
ModelSpec model_from_json(const nlohmann::json& json, const std::string& place);
ModelSpec parse_model(std::string_view text, const std::string& file);
nlohmann::ordered_json to_json(const ModelSpec& model);

/// Returns the figures that follow from the sizes: "parameters"; for a graph also "forward_gflops", and its nodes under
/// "layers".
nlohmann::ordered_json shown_figures(const ModelSpec& model);

}}  // namespace plumb::planner
