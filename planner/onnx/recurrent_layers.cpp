#include <map>
#include <string_view>

#include "planner/onnx/onnx_step.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns the layer of the recurrence's input, [tokens, channels]. States that other layers make (a decoder's, of its
/// encoder) join it, so that they come before it.
std::string input_layer(const OnnxStep& step, LayerWriter& writer) {
  constexpr std::size_t kStates[] = {5, 6};  // initial_h and initial_c
  const OnnxTensorPlace& x = *step.inputs[0];
  const std::int64_t channels = x.value.shape.back();
  const TensorShape rows = {element_count(x.shape) / channels, channels};
  std::vector<std::string> joined = {writer.reshaped(x, rows, step.node.name + ".rows").layer};
  for (const std::size_t state : kStates)
    if (step.has_layer(state)) joined.push_back(step.inputs[state]->layer);
  if (joined.size() == 1) return joined.front();
  return writer.add(step.node.name + ".start", {{"op", "tensor_function"}, {"shape", rows}, {"keeps", "nothing"}},
                    joined);
}

}  // namespace

bool recurrent_layers(const OnnxStep& step, LayerWriter& writer) {
  static const std::map<std::string_view, std::string_view> kOperators = {
      {"LSTM", "lstm"}, {"GRU", "gru"}, {"RNN", "rnn"}};
  const auto found = kOperators.find(step.node.op);
  if (found == kOperators.end() || !step.has_layer(0) || !step.is_known(1) || !step.is_known(2)) return false;
  const TensorShape& recurrence = step.inputs[2]->value.shape;
  OnnxTensorPlace made{.value = step.outputs[0]};
  made.layer = writer.add(step.node.name,
                          {{"op", found->second},
                           {"hidden", recurrence[2]},
                           {"bidirectional", recurrence[0] == 2},
                           {"bias", step.given(3)}},
                          {input_layer(step, writer)});
  for (const std::size_t weight : {1, 2, 3})
    if (step.is_known(weight)) writer.new_parameters(*step.inputs[weight], made.layer);
  const std::int64_t channels = recurrence[0] * recurrence[2];
  made.shape = {element_count(step.inputs[0]->shape) / step.inputs[0]->value.shape.back(), channels};
  for (std::size_t i = 0; i < step.outputs.size(); ++i) {
    const std::string& tensor = step.node.outputs[i];
    if (tensor.empty() || !writer.is_read(tensor)) continue;
    const TensorShape wanted = writer.of_a_sample(step.outputs[i].shape, step.place);
    const std::string name = step.node.name + (i == 0 ? ".shape" : i == 1 ? ".last" : ".last cell");
    OnnxTensorPlace output = made;
    if (i == 0) {
      output = writer.reshaped(made, wanted, name);
    } else {  // of the last token
      output.layer =
          writer.add(name, {{"op", "tensor_function"}, {"shape", wanted}, {"keeps", "nothing"}}, {made.layer});
      output.shape = wanted;
    }
    writer.bind(tensor, step.outputs[i], output.layer, output.shape);
  }
  return true;
}

}}  // namespace plumb::planner
