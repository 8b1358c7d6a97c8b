#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/spec/huggingface/families.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

/// Sizes of an encoder by the names that BERT's family gives them.
struct Encoder {
  std::int64_t layers, hidden, heads, ffn, vocab, positions, segments;
  double dropout;
};

Encoder encoder_of(HuggingFaceConfig& config, std::int64_t segments) {
  Encoder encoder{.layers = config.size("num_hidden_layers"),
                  .hidden = config.size("hidden_size"),
                  .heads = config.size("num_attention_heads"),
                  .ffn = config.size("intermediate_size"),
                  .vocab = config.size("vocab_size"),
                  .positions = config.size_or("max_position_embeddings", 512),
                  .segments = config.size_or("type_vocab_size", segments),
                  .dropout = config.rate_or("hidden_dropout_prob", 0.1)};
  if (encoder.hidden % encoder.heads != 0) {
    config.fail("num_attention_heads", fmt::format("{} heads do not divide a hidden size of {}: mend the file",
                                                   encoder.heads, encoder.hidden));
  }
  is_exact_gelu(config, "hidden_act", "gelu");
  return encoder;
}

json layer_block(const Encoder& e) {
  return {{"nodes",
           {{{"name", "attention"}, {"op", "attention"}, {"heads", e.heads}},
            {{"name", "dropout1"}, {"op", "dropout"}, {"rate", e.dropout}},
            {{"name", "add1"}, {"op", "add"}, {"inputs", {"dropout1", "@input"}}},
            {{"name", "norm1"}, {"op", "layer_norm"}},
            {{"name", "up"}, {"op", "linear"}, {"out", e.ffn}, {"activation", "gelu"}},
            {{"name", "down"}, {"op", "linear"}, {"out", e.hidden}, {"dropout", e.dropout}},
            {{"name", "add2"}, {"op", "add"}, {"inputs", {"down", "norm1"}}},
            {{"name", "norm2"}, {"op", "layer_norm"}}}}};
}

/// Returns the inputs, embeddings and layers of the encoder.
json embedding_nodes(const Encoder& e) {
  return {{{"name", "tokens"}, {"op", "input"}, {"tokens", "$sequence"}},
          {{"name", "words"}, {"op", "embedding"}, {"vocab", e.vocab}, {"hidden", e.hidden}},
          {{"name", "segments"}, {"op", "input"}, {"tokens", "$sequence"}},
          {{"name", "segment"}, {"op", "embedding"}, {"vocab", e.segments}, {"hidden", e.hidden}},
          {{"name", "sum"}, {"op", "add"}, {"inputs", {"words", "segment"}}},
          {{"name", "positions"}, {"op", "positions"}, {"rows", e.positions}},
          {{"name", "norm"}, {"op", "layer_norm"}},
          {{"name", "dropout"}, {"op", "dropout"}, {"rate", e.dropout}},
          {{"name", "layer"}, {"block", "encoder_layer"}, {"repeat", e.layers}}};
}

/// Adds the head of masked words, which works on every token of `input`.
void add_masked_words(json& nodes, const Encoder& e, const std::string& input) {
  nodes.push_back(
      {{"name", "transform"}, {"op", "linear"}, {"out", e.hidden}, {"activation", "gelu"}, {"inputs", {input}}});
  nodes.push_back({{"name", "transform_norm"}, {"op", "layer_norm"}});
  nodes.push_back({{"name", "vocabulary"}, {"op", "linear"}, {"out", e.vocab}, {"tied_to", "words"}});
  nodes.push_back({{"name", "loss"}, {"op", "loss"}});
}

ModelSpec encoder_model(const Encoder& e, std::int64_t sequence, const json& nodes) {
  return model_from_json({{"name", "encoder"},
                          {"sizes", {{"sequence", sequence}}},
                          {"blocks", {{"encoder_layer", layer_block(e)}}},
                          {"nodes", nodes}},
                         "encoder");
}

/// BERT with both heads of pre-training: masked words, next sentence.
ModelSpec bert(HuggingFaceConfig& config) {
  const Encoder e = encoder_of(config, 2);
  json nodes = embedding_nodes(e);
  nodes.push_back({{"name", "first"}, {"op", "slice"}, {"axis", 0}});
  nodes.push_back({{"name", "pooler"}, {"op", "linear"}, {"out", e.hidden}});
  nodes.push_back({{"name", "tanh"}, {"op", "tanh"}});
  nodes.push_back({{"name", "next_sentence"}, {"op", "linear"}, {"out", 2}});
  nodes.push_back({{"name", "next_sentence_loss"}, {"op", "loss"}});
  add_masked_words(nodes, e, fmt::format("layer.{}", e.layers - 1));
  return encoder_model(e, e.positions, nodes);
}

/// RoBERTa with the head of masked words; no token uses the first two rows of its table of positions.
ModelSpec roberta(HuggingFaceConfig& config) {
  const Encoder e = encoder_of(config, 1);
  json nodes = embedding_nodes(e);
  add_masked_words(nodes, e, fmt::format("layer.{}", e.layers - 1));
  return encoder_model(e, std::max<std::int64_t>(1, e.positions - 2), nodes);
}

constexpr std::array kEncoderFamilies{HuggingFaceFamily{"bert", bert}, HuggingFaceFamily{"roberta", roberta}};

}  // namespace

std::span<const HuggingFaceFamily> encoder_families() {
  return kEncoderFamilies;
}

}}  // namespace plumb::planner
