#pragma once
// Builds a layer program step by step. The files of this folder use it; each emits the programs of one kind of layer,
// or of one part of a decoder block.

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/layer/layer_ends.h"
#include "kernels/layer/program/program.h"

namespace plumb { inline namespace kernels {

/// A device's temporaries that lie in the same memory, one after the other, while a pass runs.
enum class Room : std::uint8_t {
  kRows,        ///< [T, h] gathered rows, and results of products
  kGathered,    ///< [T, h] the gathered input of experts
  kDropped,     ///< [R, h] a branch's gradient before its dropout
  kReplicated,  ///< [2, h] gradients of parameters that all tensor ranks have
  kExpertRows,  ///< rows as the experts have them
  kTravelling,  ///< rows on their way to experts or back
  kTokens,      ///< [T, h] what the router and the shared expert add
  kWords,       ///< weights of picks on their way
  kReceived,    ///< weights of picks that have arrived
  kOutgoing,    ///< what context ranks send
  kIncoming,    ///< what arrives from them
};
inline constexpr int kRoomCount = 11;

/// A product with a weight [out, in], its bias, and the name that both have.
struct Product {
  std::string name;
  std::int64_t out = 0;
  std::int64_t in = 0;
  int weight = -1;  ///< parameter
  int bias = -1;    ///< parameter; -1: none
};

/// A norm over rows of `columns` channels.
struct Norm {
  std::string name;
  NormKind kind = NormKind::kRmsNorm;
  std::int64_t columns = 0;
  int gain = -1;         ///< parameter
  int bias = -1;         ///< parameter; -1: none
  Positions statistics;  ///< tensors, from the forward on
  /// Tensor ranks norm different rows, so that the gradients of its parameters are summed over them.
  bool sums_gradients = false;
};

class ProgramBuilder {
 public:
  ProgramBuilder(const LayerWork& work, Machine machine, bool parameters_only)
      : work_(work), machine_(machine), parameters_only_(parameters_only) {
    rooms_.fill(-1);
    if (parameters_only) return;
    constexpr std::size_t kMany = 96;  // more than most programs have
    program_.tensors.reserve(kMany);
    program_.steps.reserve(kMany);
  }

  const LayerWork& work() const { return work_; }
  bool on_device() const { return machine_ == Machine::kDevice; }
  /// True if nothing but the parameters is wanted.
  bool parameters_only() const { return parameters_only_; }

  std::int64_t tokens() const { return tokens_in(work_); }
  std::int64_t own_rows() const { return own_rows_in(work_); }
  /// Returns a block's sizes on this rank.
  TransformerLayer share_of(const TransformerLayer& layer) const {
    return rank_share(layer, work_.tensor_parallel, work_.experts);
  }
  /// True if tensor ranks divide the rows between products.
  bool divides_rows() const { return work_.sequence_parallel && work_.tensor_parallel > 1; }

  /// Declares a parameter that every rank has whole, or whose dimension `split` tensor ranks divide. Vectors begin at
  /// zeros, and matrices with normal values.
  int parameter(std::string name, std::vector<std::int64_t> shape, int split = -1,
                std::vector<DividedPiece> pieces = {});
  ParameterTensor& parameter_at(int parameter) { return program_.parameters[static_cast<std::size_t>(parameter)]; }
  /// Declares name.weight [out, in], divided along `split` (-1: whole), and name.bias where wanted.
  Product product(const std::string& name, std::int64_t out, std::int64_t in, int split, bool has_bias,
                  std::vector<DividedPiece> pieces = {});
  Norm norm(const std::string& name, NormKind kind, std::int64_t columns);

  int tensor(std::string name, std::int64_t rows, std::int64_t columns, StoredType type = StoredType::kElement,
             Origin origin = Origin::kStep);
  /// Adds a tensor of the same shape that takes the storage of `other`.
  int in_place_of(std::string name, int other);
  /// Adds a temporary that lies in a room of a device.
  int temporary(Room room, std::string name, std::int64_t rows, std::int64_t columns,
                StoredType type = StoredType::kElement);
  /// Lets the temporaries that follow have memory of their own, which no later one takes.
  void set_own_memory(bool own) { own_memory_ = own; }
  LayerProgram& program() { return program_; }
  const LayerTensor& at(int tensor) const { return program_.tensors[static_cast<std::size_t>(tensor)]; }

  /// Declares the layer's input and the gradient of its output.
  int input(std::int64_t rows, std::int64_t columns);
  int output_gradient(std::int64_t rows, std::int64_t columns);

  void begin(Pass pass) {
    pass_ = pass;
    rooms_.fill(-1);
  }
  void enter(Section section) { section_ = section; }

  LayerStep& kernel(std::string name, KernelCall call, const Positions& reads, const Positions& writes);
  LayerStep& exchange(std::string name, Exchange exchange, const Positions& reads, const Positions& writes);

  /// Returns all T rows of `own` over the tensor group: itself, or a temporary into which they are gathered.
  int gathered(int own, Room room = Room::kRows);
  /// Sums over the tensor group; returns the own rows of the sum. partial: [T, columns]. A device leaves them where
  /// they are, unless they are to be moved.
  int summed(int partial, bool moved = false);

  /// Copies rows out of the columns from this one on of wider rows, or rows into them, where `beside` says that the other
  /// columns are there already.
  LayerStep& copy_columns(const std::string& name, std::int64_t first_column, int from, int to, bool beside = false);

  /// The output may have several of the norm's rows in one of its own: its elements say how many there are.
  LayerStep& norm_forward(Norm& norm, int input, int output);
  /// past: gradient that is added, or -1.
  void norm_backward(const Norm& norm, int output_gradient, int past, int input, int input_gradient);

  /// y = x W^T; the bias is a step of its own.
  void multiply(const Product& product, int x, int y);
  void add_bias(const Product& product, int y);
  void input_gradient(const Product& product, int dy, int dx);
  void weight_gradient(const Product& product, int dy, int x);
  /// As weight_gradient(), for a weight that every tensor rank has, from the rank's own rows.
  void replicated_weight_gradient(const Product& product, int dy, int x);
  /// Adds the gradient of a bias; `dy` has own rows if the bias is that of a row-parallel product.
  void bias_gradient(const Product& product, int dy, bool row_parallel);
  void dropout(const std::string& name, int x, int y, BlockDropout mask = {});

 private:
  LayerStep& step(std::string name, std::variant<KernelCall, Exchange> does, const Positions& reads,
                  const Positions& writes);
  /// Lets a step add to gradients, which are summed over the tensor group first if `summed`.
  void add_gradients(LayerStep& step, const Positions& parameters, std::int64_t columns, bool summed);

  LayerWork work_;
  Machine machine_;
  bool parameters_only_;
  bool own_memory_ = false;
  Pass pass_ = Pass::kForward;
  Section section_ = Section::kLayer;
  std::array<int, kRoomCount> rooms_{};  // first tensor of each room in this pass
  LayerProgram program_;
};

inline KernelCall gemm_call(std::int64_t m, std::int64_t n, std::int64_t k, GemmForm form) {
  return kernel_call(KernelKind::kGemm, {m, n, k, 1, static_cast<std::int64_t>(form)});
}

void emit(ProgramBuilder& builder, const EmbeddingLayer& layer);
void emit(ProgramBuilder& builder, const TransformerLayer& layer);
void emit(ProgramBuilder& builder, const HeadLayer& layer);
void emit(ProgramBuilder& builder, const InputLayer& layer);
void emit(ProgramBuilder& builder, const ConvolutionLayer& layer);
void emit(ProgramBuilder& builder, const PoolingLayer& layer);
void emit(ProgramBuilder& builder, const LinearLayer& layer);
void emit(ProgramBuilder& builder, const MlpLayer& layer);
void emit(ProgramBuilder& builder, const LossLayer& layer);

}}  // namespace plumb::kernels
