#include "executor/training/check_model.h"

#include <algorithm>

#include <fmt/format.h>

#include "executor/spec/require.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

/// Returns the elements that an embedding, block or head exchanges with the next layer, a token.
std::int64_t hidden_of(const Layer& layer) {
  return std::max(input_elements(layer, {}), output_elements(layer, {}));
}

void check_mamba2(const Mamba2Mixer& mixer, int number) {
  require(mixer.groups >= 1 && mixer.heads >= 1 && mixer.heads % mixer.groups == 0,
          fmt::format("layer {}: {} heads in {} groups; groups must divide heads", number, mixer.heads, mixer.groups));
  require(
      mixer.head_size >= 1 && mixer.state_size >= 1 && mixer.taps >= 1 && mixer.chunk >= 1,
      fmt::format("layer {}: heads of {} channels, states of {}, {} taps and chunks of {} tokens; give at least 1 of "
                  "each",
                  number, mixer.head_size, mixer.state_size, mixer.taps, mixer.chunk));
}

/// Checks what mixes tokens, and what feeds forward.
void check_halves(const TransformerLayer& block, int number) {
  require(block.mixes_tokens() || block.feeds_forward(),
          fmt::format("layer {} mixes no tokens and feeds nothing forward; give it heads, a state mixer or an ffn",
                      number));
  require(block.heads == 0 || (block.heads >= 1 && block.kv_heads >= 1 && block.heads % block.kv_heads == 0),
          fmt::format("layer {}: {} heads and {} kv heads; kv heads must divide heads", number, block.heads,
                      block.kv_heads));
  require(block.heads == 0 || block.head_size >= 1, fmt::format("layer {}: head size must be at least 1", number));
  require(block.ffn >= 0, fmt::format("layer {}: ffn must be at least 0", number));
  if (const auto* mamba2 = std::get_if<Mamba2Mixer>(&block.states)) check_mamba2(*mamba2, number);
  const std::string_view missing = kernel_without_code(block);
  require(missing.empty(),
          fmt::format("layer {} needs the kernel {}, which is priced and which Plumb does not run: simulate the model, "
                      "or choose one of attention and Mamba-2 with gated norms",
                      number, missing));
}

void check_block(const TransformerLayer& block, int number) {
  check_halves(block, number);
  require(
      block.experts == 0 ||
          (block.expert_ffn >= 1 && block.experts_per_token >= 1 && block.experts_per_token <= block.experts),
      fmt::format("layer {}: {} of {} experts a token with {} channels each; give at least one of each, and no more "
                  "experts a token than there are",
                  number, block.experts_per_token, block.experts, block.expert_ffn));
  const std::int64_t groups = block.expert_groups, picked = block.groups_per_token;
  require(
      block.experts == 0 || (groups >= 1 && block.experts % groups == 0 && picked >= 1 && picked <= groups &&
                             block.experts_per_token <= block.experts / groups * picked),
      fmt::format("layer {}: {} of {} experts a token from {} of {} groups; give groups that divide the experts, and "
                  "enough of them for the picks",
                  number, block.experts_per_token, block.experts, picked, groups));
  require(
      block.capacity_factor >= 0 && block.balance_loss >= 0 && block.dropout >= 0 && block.dropout < 1,
      fmt::format("layer {}: a capacity factor of {}, a balance loss of {} and a dropout of {}; give 0 or more, and "
                  "less than 1 of dropout",
                  number, block.capacity_factor, block.balance_loss, block.dropout));
  require(block.rotary_size >= 0 && block.rotary_size % 2 == 0 && block.rotary_size <= block.head_size,
          fmt::format("layer {}: rotary size {} must be even and at most the head size {}", number, block.rotary_size,
                      block.head_size));
  require(
      block.kv_rank >= 0 && block.query_rank >= 0 && (block.kv_rank == 0 || block.value_size >= 1),
      fmt::format("layer {}: latent attention of ranks {} and {} with values of {} channels; give ranks of 0 or more, "
                  "and values of at least 1 channel",
                  number, block.query_rank, block.kv_rank, block.value_size));
  require(!block.selection_bias || block.balance_rate > 0,
          fmt::format("layer {}: a bias of picks that steps move by {}; give it a rate above 0", number,
                      block.balance_rate));
  require(block.attention_softcap >= 0,
          fmt::format("layer {}: a softcap of {}; give 0 for none", number, block.attention_softcap));
  require(block.router == RouterKind::kSoftmax || block.balance_loss == 0,
          fmt::format("layer {}: a balance loss is that of a softmax: give a sigmoid router none", number));
  require(block.window >= 0, fmt::format("layer {}: a window of {} tokens; give 0 for none", number, block.window));
}

void check_text_model(const std::vector<Layer>& model, const RunSpec& spec) {
  require(std::holds_alternative<HeadLayer>(model.back()), "a model starts with an embedding and ends with a head");
  for (std::size_t i = 0; i < model.size(); ++i) {
    const int number = static_cast<int>(i);
    const bool is_end = i == 0 || i + 1 == model.size();
    require(is_end != is_block(model[i]), fmt::format("layer {} is {}: between embedding and head there are blocks",
                                                      number, layer_kind_name(model[i])));
    require(hidden_of(model[i]) == hidden_of(model[0]) && hidden_of(model[i]) >= 1,
            fmt::format("layer {}: hidden size {}, and the embedding's is {}", number, hidden_of(model[i]),
                        hidden_of(model[0])));
    const auto* block = std::get_if<TransformerLayer>(&model[i]);
    if (block == nullptr) continue;
    check_block(*block, number);
    require(block->kv_rank == 0 || spec.grid.context == 1 || spec.context_attention == ContextAttention::kRing,
            fmt::format("layer {}: the heads of latent attention cannot be exchanged; give the context group a ring",
                        number));
  }
  const auto& embedding = std::get<EmbeddingLayer>(model.front());
  require(embedding.dropout >= 0 && embedding.dropout < 1,
          fmt::format("layer 0: dropout {}; give 0 or more and less than 1", embedding.dropout));
  const auto& head = std::get<HeadLayer>(model.back());
  require(embedding.vocab == head.vocab,
          fmt::format("the embedding has {} tokens and the head {}", embedding.vocab, head.vocab));
  require(embedding.positions == 0 || embedding.positions >= spec.sequence,
          fmt::format("sequences of {} tokens, and the embedding has {} positions; shorten the sequences",
                      spec.sequence, embedding.positions));
}

void check_text(const HeadLayer& head, const RunSpec& spec) {
  if (static_cast<std::int64_t>(spec.text.size()) < spec.sequence + 1)
    throw InputError(
        fmt::format("{} has {} bytes, and a sequence of {} tokens needs {}: give a longer text or a "
                    "shorter sequence",
                    spec.text_name, spec.text.size(), spec.sequence, spec.sequence + 1));
  const std::int64_t vocab = head.vocab - head.padding;
  for (std::size_t i = 0; i < spec.text.size(); ++i)
    if (spec.text[i] >= vocab)
      throw InputError(
          fmt::format("byte {} of {} is {}, and the model's vocabulary has {} tokens: a token is a byte, so give the "
                      "model 256",
                      i, spec.text_name, spec.text[i], vocab));
}

struct ImageShape {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;

  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

void check_windows(int number, const ImageShape& shape, std::int64_t kernel, std::int64_t stride,
                   std::int64_t padding) {
  require(kernel >= 1 && stride >= 1 && padding >= 0 && kernel > padding &&
              kernel <= std::min(shape.height, shape.width) + 2 * padding,
          fmt::format("layer {}: windows of {} with stride {} and padding {} do not fit images of {} x {}", number,
                      kernel, stride, padding, shape.height, shape.width));
}

/// Checks one layer behind images of `shape` (empty where rows of numbers come in) and returns the shape behind it.
ImageShape check_sample_layer(const Layer& layer, int number, const ImageShape& shape) {
  const auto require_shape = [&](const ImageShape& own) {
    require(own == shape,
            fmt::format("layer {} takes images of {} x {} x {}, and the layer before gives {} x {} x {}", number,
                        own.height, own.width, own.channels, shape.height, shape.width, shape.channels));
  };
  if (const auto* convolution = std::get_if<ConvolutionLayer>(&layer)) {
    require_shape({convolution->height, convolution->width, convolution->channels});
    check_windows(number, shape, convolution->kernel, convolution->stride, convolution->padding);
    require(convolution->filters >= 1 && convolution->groups >= 1 && convolution->channels % convolution->groups == 0 &&
                convolution->filters % convolution->groups == 0,
            fmt::format("layer {}: {} groups must divide {} channels and {} filters", number, convolution->groups,
                        convolution->channels, convolution->filters));
    return {windows_in(shape.height, convolution->kernel, convolution->stride, convolution->padding),
            windows_in(shape.width, convolution->kernel, convolution->stride, convolution->padding),
            convolution->filters};
  }
  if (const auto* pooling = std::get_if<PoolingLayer>(&layer)) {
    require_shape({pooling->height, pooling->width, pooling->channels});
    check_windows(number, shape, pooling->kernel, pooling->stride, 0);
    return {windows_in(shape.height, pooling->kernel, pooling->stride),
            windows_in(shape.width, pooling->kernel, pooling->stride), shape.channels};
  }
  if (const auto* linear = std::get_if<LinearLayer>(&layer))
    require(linear->dropout >= 0 && linear->dropout < 1,
            fmt::format("layer {}: dropout {}; give 0 or more and less than 1", number, linear->dropout));
  require(!std::holds_alternative<EmbeddingLayer>(layer) && !is_block(layer) &&
              !std::holds_alternative<HeadLayer>(layer) && !std::holds_alternative<InputLayer>(layer),
          fmt::format("layer {} is {}: between input and loss there are convolutions, poolings, linear layers and MLPs",
                      number, layer_kind_name(layer)));
  return {1, 1, output_elements(layer, {})};
}

void check_sample_model(const std::vector<Layer>& model, const RunSpec& spec) {
  require(std::holds_alternative<LossLayer>(model.back()), "a model that starts with an input ends with a loss");
  require(spec.sequence == 1, fmt::format("sequences of {} tokens: samples are no sequences, give 1", spec.sequence));
  const auto& input = std::get<InputLayer>(model.front());
  ImageShape shape{input.height, input.width, input.channels};
  for (std::size_t i = 1; i < model.size(); ++i) {
    const int number = static_cast<int>(i);
    const std::int64_t before = output_elements(model[i - 1], {}), taken = input_elements(model[i], {});
    require(before == taken && before >= 1,
            fmt::format("layer {} takes {} numbers of a sample, and the layer before gives {}", number, taken, before));
    if (i + 1 < model.size()) shape = check_sample_layer(model[i], number, shape);
    const auto* convolution = std::get_if<ConvolutionLayer>(&model[i]);
    const auto* linear = std::get_if<LinearLayer>(&model[i]);
    const bool input_grad =
        (convolution == nullptr || convolution->input_grad) && (linear == nullptr || linear->input_grad);
    require(
        input_grad || (i == 1 && spec.stage_layers[0].size() > 1),
        fmt::format("layer {} hands no gradient back: it must be the first behind the input and on its stage", number));
  }
}

void check_samples(const InputLayer& input, const LossLayer& loss, const SampleData& data) {
  require(data.shape == input && data.outputs == loss.width,
          fmt::format("samples of {} x {} x {} with {} outputs, and the model takes {} x {} x {} and gives {}",
                      data.shape.height, data.shape.width, data.shape.channels, data.outputs, input.height, input.width,
                      input.channels, loss.width));
  const ImageSet& images = data.images;
  if (images.labels.empty()) {
    if (data.samples < 1) throw InputError("a set of 0 samples: give at least 1");
    return;
  }
  if (loss.loss != LossKind::kCrossEntropy)
    throw InputError("images have labels, and the model's loss is a squared error: give no images");
  if (images.channels != input.channels)
    throw InputError(fmt::format("images of {} channels, and the model takes {}", images.channels, input.channels));
  const std::uint8_t largest = *std::ranges::max_element(images.labels);
  if (largest >= loss.width)
    throw InputError(fmt::format("a label is {}, and the model has {} classes", largest, loss.width));
}

}  // namespace

void require_trainable(const std::vector<Layer>& model, const RunSpec& spec) {
  require(!model.empty(), "a model has no layers: give at least its two ends");
  if (std::holds_alternative<InputLayer>(model.front())) {
    check_sample_model(model, spec);
    check_samples(std::get<InputLayer>(model.front()), std::get<LossLayer>(model.back()), spec.samples);
    return;
  }
  require(std::holds_alternative<EmbeddingLayer>(model.front()),
          "a model starts with an embedding and ends with a head, or starts with an input and ends with a loss");
  check_text_model(model, spec);
  check_text(std::get<HeadLayer>(model.back()), spec);
}

}}  // namespace plumb::executor
