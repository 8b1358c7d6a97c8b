#pragma once
// Models and texts small enough to train in a test, and RunSpecs made of them.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/training/run.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"

namespace plumb::test {

inline constexpr std::int64_t kVocab = 32;

inline TransformerLayer llama_block() {
  return {.hidden = 16, .heads = 4, .kv_heads = 2, .head_size = 4, .ffn = 24, .rotary_size = 4};
}

inline TransformerLayer gpt_block() {
  return {.hidden = 16,
          .heads = 2,
          .kv_heads = 2,
          .head_size = 8,
          .ffn = 32,
          .norm = NormKind::kLayerNorm,
          .mlp = MlpKind::kGelu,
          .qkv_bias = true,
          .linear_bias = true};
}

/// Returns a block like Mixtral's: every token passes two of four experts, whose weights sum to 1.
inline TransformerLayer mixtral_block() {
  TransformerLayer block = llama_block();
  block.experts = 4;
  block.experts_per_token = 2;
  block.expert_ffn = 12;
  block.balance_loss = 0.02;
  return block;
}

/// Returns a block like DeepSeek's, with GPT-2's attention and GELU: it has a shared expert, plain probabilities, and a
/// capacity that drops picks.
inline TransformerLayer shared_expert_block() {
  TransformerLayer block = gpt_block();
  block.qkv_bias = block.linear_bias = false;
  block.experts = 4;
  block.experts_per_token = 2;
  block.expert_ffn = 8;
  block.shared_ffn = 12;
  block.renormalised = false;
  block.capacity_factor = 1;
  block.balance_loss = 0.05;
  return block;
}

/// Returns a block like gpt-oss's: sinks, and biases on attention, router and experts.
inline TransformerLayer sink_block() {
  TransformerLayer block = mixtral_block();
  block.window = 3;
  block.qkv_bias = block.linear_bias = block.sinks = block.router_bias = block.expert_bias = true;
  return block;
}

/// Returns a block like DeepSeek-V3's: latent attention, and a mixture whose router has a sigmoid for each expert and
/// a bias of picks.
inline TransformerLayer latent_block() {
  return {.hidden = 16,
          .heads = 4,
          .kv_heads = 4,
          .head_size = 6,
          .ffn = 24,
          .rotary_size = 2,
          .experts = 4,
          .experts_per_token = 2,
          .expert_ffn = 12,
          .shared_ffn = 8,
          .router = RouterKind::kSigmoid,
          .selection_bias = true,
          .query_rank = 10,
          .kv_rank = 8,
          .value_size = 5};
}

/// Returns a block like Gemma 2's: bounded scores, in a window.
inline TransformerLayer capped_block() {
  TransformerLayer block = llama_block();
  block.attention_softcap = 1.5;
  block.window = 5;
  return block;
}

/// Returns a language model whose blocks are a dense one with latent attention, mixtures with it, and bounded ones, with
/// bounded logits.
inline std::vector<Layer> latent_model() {
  TransformerLayer dense = latent_block();
  dense.experts = dense.experts_per_token = dense.expert_ffn = dense.shared_ffn = dense.query_rank = 0;
  dense.router = RouterKind::kSoftmax;
  return {EmbeddingLayer{.vocab = kVocab, .hidden = 16},
          dense,
          latent_block(),
          capped_block(),
          latent_block(),
          HeadLayer{.vocab = kVocab, .hidden = 16, .logit_softcap = 2}};
}

/// Returns a block of Mamba-2 in two groups of two heads.
inline Mamba2Mixer mamba2_mixer() {
  return {.heads = 4, .head_size = 6, .state_size = 5, .groups = 2, .taps = 3, .chunk = 3};
}
inline TransformerLayer mamba2_block() {
  return {.hidden = 16, .states = mamba2_mixer()};
}

/// Returns blocks as Nemotron-H and Falcon-H1 have them: Mamba-2 alone, an MLP alone, both mixers beside each other with an
/// MLP, attention alone, Mamba-2 with an MLP, and Mamba-2 with experts.
inline std::vector<TransformerLayer> hybrid_blocks() {
  TransformerLayer mlp = llama_block(), beside = llama_block(), attention = llama_block(), with_mlp = llama_block(),
                   with_experts = mixtral_block();
  for (TransformerLayer* block : {&mlp, &with_mlp, &with_experts}) block->heads = block->kv_heads = 0;
  attention.ffn = 0;
  for (TransformerLayer* block : {&beside, &with_mlp, &with_experts}) block->states = mamba2_mixer();
  return {mamba2_block(), mlp, beside, attention, with_mlp, with_experts};
}

inline std::vector<Layer> hybrid_model() {
  std::vector<Layer> model = {EmbeddingLayer{.vocab = kVocab, .hidden = 16}};
  for (const TransformerLayer& block : hybrid_blocks()) model.emplace_back(block);
  model.emplace_back(HeadLayer{.vocab = kVocab, .hidden = 16});
  return model;
}

/// Returns an embedding, blocks of Mamba-2 with one like Llama's among them, and a head.
inline std::vector<Layer> mamba2_model() {
  return {EmbeddingLayer{.vocab = kVocab, .hidden = 16}, mamba2_block(), mamba2_block(), llama_block(), mamba2_block(),
          HeadLayer{.vocab = kVocab, .hidden = 16}};
}

/// Returns an embedding, `dense` blocks like Llama's, then mixtures of experts, and a head.
inline std::vector<Layer> mixtral_model(int blocks = 4, int dense = 1) {
  std::vector<Layer> model = {EmbeddingLayer{.vocab = kVocab, .hidden = 16}};
  for (int block = 0; block < blocks; ++block) model.push_back(block < dense ? llama_block() : mixtral_block());
  model.push_back(HeadLayer{.vocab = kVocab, .hidden = 16});
  return model;
}

inline std::vector<Layer> sink_model(int blocks = 4) {
  std::vector<Layer> model = {EmbeddingLayer{.vocab = kVocab, .hidden = 16}};
  model.insert(model.end(), static_cast<std::size_t>(blocks), sink_block());
  model.push_back(HeadLayer{.vocab = kVocab, .hidden = 16});
  return model;
}

/// Returns a model like Mixtral's whose routers have a sigmoid for each expert, as DeepSeek-V3's have, and biases of picks
/// that loads move.
inline std::vector<Layer> balanced_pick_model(int blocks = 4) {
  std::vector<Layer> model = mixtral_model(blocks, 0);
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) {
      block->router = RouterKind::kSigmoid;
      block->selection_bias = true;
      block->balance_rate = 0.02;
      block->balance_loss = 0;
    }
  return model;
}

inline std::vector<Layer> shared_expert_model(int blocks = 4) {
  std::vector<Layer> model = {EmbeddingLayer{.vocab = kVocab, .hidden = 16, .positions = 16}};
  model.insert(model.end(), static_cast<std::size_t>(blocks), shared_expert_block());
  model.push_back(HeadLayer{.vocab = kVocab, .hidden = 16, .norm = NormKind::kLayerNorm, .tied = true});
  return model;
}

/// Returns the language model with a table of its own for its head.
inline std::vector<Layer> untied(std::vector<Layer> model) {
  std::get<HeadLayer>(model.back()).tied = false;
  return model;
}

/// Returns the model with dropout wherever a language model has it.
inline std::vector<Layer> with_dropout(std::vector<Layer> model, double dropout = 0.2) {
  std::get<EmbeddingLayer>(model.front()).dropout = dropout;
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->dropout = dropout;
  return model;
}

/// Returns the model with parallel residuals, whose attention and MLP read the same input.
inline std::vector<Layer> with_parallel_residuals(std::vector<Layer> model) {
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->parallel_residual = true;
  return model;
}

/// Returns the model with norms of queries and keys.
inline std::vector<Layer> with_head_norms(std::vector<Layer> model, QueryKeyNorms norms) {
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->query_key_norms = norms;
  return model;
}

/// Returns an embedding, blocks like Llama's, and a head.
inline std::vector<Layer> llama_model(int blocks = 4) {
  std::vector<Layer> model = {EmbeddingLayer{.vocab = kVocab, .hidden = 16}};
  model.insert(model.end(), static_cast<std::size_t>(blocks), llama_block());
  model.push_back(HeadLayer{.vocab = kVocab, .hidden = 16});
  return model;
}

/// Returns a model like Llama's with four kv heads, so that two tensor and two context ranks can share them.
inline std::vector<Layer> wide_llama(int blocks) {
  std::vector<Layer> model = llama_model(blocks);
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->kv_heads = 4;
  return model;
}

/// Returns an embedding with positions, blocks like GPT-2's, and a head that shares the embedding's table.
inline std::vector<Layer> gpt_model(int blocks = 4) {
  std::vector<Layer> model = {EmbeddingLayer{.vocab = kVocab, .hidden = 16, .positions = 16}};
  model.insert(model.end(), static_cast<std::size_t>(blocks), gpt_block());
  model.push_back(HeadLayer{.vocab = kVocab, .hidden = 16, .norm = NormKind::kLayerNorm, .tied = true});
  return model;
}

/// Returns a model of 9 x 7 images with overlapping windows, groups, both poolings, dropout and four classes.
inline std::vector<Layer> cnn_model() {
  return {
      InputLayer{.height = 9, .width = 7, .channels = 3},
      ConvolutionLayer{
          .height = 9, .width = 7, .channels = 3, .filters = 8, .kernel = 3, .padding = 1, .input_grad = false},
      PoolingLayer{.height = 9, .width = 7, .channels = 8, .kernel = 3, .stride = 2},
      ConvolutionLayer{.height = 4, .width = 3, .channels = 8, .filters = 6, .kernel = 2, .groups = 2},
      PoolingLayer{.height = 3, .width = 2, .channels = 6, .kernel = 2, .stride = 1, .pooling = PoolingKind::kAverage},
      LinearLayer{.in = 12, .out = 10, .activation = Activation::kRelu, .dropout = 0.25},
      LinearLayer{.in = 10, .out = 4},
      LossLayer{.width = 4}};
}

/// Returns a model of vectors with GELUs and a squared error.
inline std::vector<Layer> mlp_model() {
  return {InputLayer{.width = 6},
          LinearLayer{.in = 6, .out = 8, .activation = Activation::kGelu, .input_grad = false},
          MlpLayer{.hidden = 8, .ffn = 12},
          MlpLayer{.hidden = 8, .ffn = 10, .exact_gelu = true},
          LinearLayer{.in = 8, .out = 8, .bias = false, .activation = Activation::kGelu, .dropout = 0.1},
          MlpLayer{.hidden = 8, .ffn = 12},
          LinearLayer{.in = 8, .out = 3},
          LossLayer{.width = 3, .loss = LossKind::kSquaredError}};
}

inline const std::vector<OptimizerSettings> kAllOptimizers = {AdamW{}, AdamW8Bit{}, Sgd{}, Lion{}, Adafactor{}};

inline bool reads_samples(const std::vector<Layer>& model) {
  return std::holds_alternative<InputLayer>(model.front());
}

/// Returns made-up samples for a model that reads samples.
inline SampleData samples_for(const std::vector<Layer>& model) {
  if (!reads_samples(model)) return {};
  return {
      .shape = std::get<InputLayer>(model.front()), .outputs = std::get<LossLayer>(model.back()).width, .samples = 40};
}

/// Returns the model cut into contiguous stages as equal as can be, larger ones first.
inline std::vector<std::vector<Layer>> cut(const std::vector<Layer>& model, int stages) {
  std::vector<std::vector<Layer>> parts;
  std::size_t next = 0;
  for (int stage = 0; stage < stages; ++stage) {
    const std::size_t left = static_cast<std::size_t>(stages - stage);
    const std::size_t count = (model.size() - next + left - 1) / left;
    parts.emplace_back(model.begin() + static_cast<std::ptrdiff_t>(next),
                       model.begin() + static_cast<std::ptrdiff_t>(next + count));
    next += count;
  }
  return parts;
}

/// Returns a text with something to learn: mostly, a token is 7 further than the one before it.
inline std::vector<std::uint8_t> walk_text(std::size_t bytes = 400) {
  std::vector<std::uint8_t> text(bytes);
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<std::uint8_t>((7 * i + i / 10) % kVocab);
  return text;
}

inline RunSpec spec_of_lowered(const std::vector<Layer>& model, Schedule lowered, int data = 1) {
  RunSpec spec;
  spec.schedule = std::move(lowered);
  spec.grid = {.data = data, .pipeline = static_cast<int>(spec.schedule.ranks.size())};
  int parts = 0;
  for (const StagePlace& place : spec.schedule.stages) parts = std::max(parts, place.model_part + 1);
  const std::vector<std::vector<Layer>> pieces = cut(model, parts);
  for (const StagePlace& place : spec.schedule.stages) {
    spec.stage_layers.push_back(pieces[static_cast<std::size_t>(place.model_part)]);
  }
  spec.microbatch = 2;
  spec.sequence = reads_samples(model) ? 1 : 7;
  spec.text = walk_text();
  spec.samples = samples_for(model);
  spec.watchdog = Seconds{20};
  return spec;
}

inline RunSpec spec_of(const std::vector<Layer>& model, const Schedule& compute_order, int data = 1) {
  return spec_of_lowered(model, lower(compute_order, {.data = {.enabled = data > 1}}), data);
}

/// Returns a run of the model over a grid, whose pipeline degree is that of the shape, with 8 tokens a sequence.
inline RunSpec spec_over(const std::vector<Layer>& model, std::string_view schedule, const ScheduleParameters& shape,
                         const ProcessGrid& grid, int zero = 0) {
  const LoweringOptions options{.data = {.enabled = grid.data * grid.context > 1, .zero = zero}};
  RunSpec spec = spec_of_lowered(model, lower(make_schedule(schedule, shape), options), grid.data);
  const int pipeline = spec.grid.pipeline;
  spec.grid = grid;
  spec.grid.pipeline = pipeline;
  spec.zero = zero;
  spec.sequence = 8;
  return spec;
}

/// Returns a run of the whole model on one rank, with micro-batches one after the other.
inline RunSpec one_rank(const std::vector<Layer>& model, int microbatches) {
  return spec_of(model, make_schedule("naive", {.ranks = 1, .microbatches = microbatches}));
}

/// Returns that run with 8 tokens a sequence, so that 2 and 4 ranks can share them.
inline RunSpec alone_on_one_rank(const std::vector<Layer>& model, int microbatches) {
  RunSpec spec = one_rank(model, microbatches);
  spec.sequence = 8;
  return spec;
}

/// Returns the largest max|a - b| / max|b| over the model's parameter tensors; 0 if they are bitwise equal.
inline double worst_difference(const ModelValues& a, const ModelValues& b) {
  if (a == b) return 0;
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t layer = 0; layer < b.size() && layer < a.size(); ++layer)
    for (std::size_t i = 0; i < b[layer].size(); ++i) {
      double difference = 0, largest = 1e-30;
      for (std::size_t e = 0; e < b[layer][i].size(); ++e) {
        difference = std::max(difference, std::abs(double(a[layer][i][e]) - double(b[layer][i][e])));
        largest = std::max(largest, std::abs(double(b[layer][i][e])));
      }
      worst = std::max(worst, difference / largest);
    }
  return worst;
}

/// Returns the gradients of the first step.
inline ModelValues gradients_of(RunSpec spec) {
  spec.steps = 1;
  return run(spec, {.capture_gradients = true}).gradients.at(0);
}

}  // namespace plumb::test
