#include "planner/shard/sharding.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "planner/price/layer/graph_price.h"

namespace plumb { inline namespace planner {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// The dimension along which each axis of the mesh divides a tensor; -1: it does not.
using Spec = std::array<int, 2>;

class Builder {
 public:
  Builder(Pricing& pricing, const ShardingQuestion& question)
      : pricing_(pricing), question_(question), nodes_(pricing.graph()->nodes), kept_(kept_outputs(nodes_)) {}

  ShardingProblem problem() {
    ShardingProblem problem;
    for (int node = question_.begin; node < question_.end; ++node) {
      problem.axes.push_back(node_axes(nodes_, node));
      add_node(node, problem);
    }
    for (int node = question_.begin; node < question_.end; ++node)
      for (std::size_t i = 0; i < nodes_[node].inputs.size(); ++i)
        if (nodes_[node].inputs[i] >= question_.begin) add_edge(node, i, problem);
    return problem;
  }

  /// The time of a node on one device, of its forward and of both passes.
  Seconds forward_seconds(int node) const {
    return total(graph_node_price(pricing_.kernels(), nodes_[node], question_.samples).forward);
  }
  Seconds whole_seconds(int node) const {
    const LayerPrice price = graph_node_price(pricing_.kernels(), nodes_[node], question_.samples);
    return total(price.forward) + total(whole_backward(price));
  }

  /// Adds the parameters and kept elements of one device.
  void add_memory(int node, const std::vector<NodeAxis>& axes, const NodeSharding& sharding,
                  GraphSharding& answer) const {
    double kept = 0;
    const double samples = static_cast<double>(question_.samples);
    for (const OwnTensor& tensor : nodes_[node].own) kept += static_cast<double>(tensor.elements) * samples;
    kept /= divided(sharding);
    if (kept_[node]) kept += tensor_elements(node) / parts(output_spec(axes, sharding));
    const auto parameters = static_cast<double>(parameter_count(nodes_[node]));
    answer.parameters += static_cast<std::int64_t>(parameters_held(node, axes, sharding));
    answer.optimized += static_cast<std::int64_t>(parameters / divided(sharding));
    answer.kept_elements += static_cast<std::int64_t>(kept);
  }

 private:
  double ranks(std::size_t x) const { return question_.mesh[x].ranks; }

  /// Returns the devices among which the node is divided.
  double divided(const NodeSharding& sharding) const {
    double parts = 1;
    for (std::size_t x = 0; x < 2; ++x)
      if (sharding.axis[x] >= 0) parts *= ranks(x);
    return parts;
  }

  double parts(const Spec& spec) const { return (spec[0] >= 0 ? ranks(0) : 1) * (spec[1] >= 0 ? ranks(1) : 1); }

  double tensor_elements(int node) const {
    return static_cast<double>(element_count(nodes_[node].shape)) * static_cast<double>(question_.samples);
  }

  double parameters_held(int node, const std::vector<NodeAxis>& axes, const NodeSharding& sharding) const {
    double parameters = static_cast<double>(parameter_count(nodes_[node]));
    for (std::size_t x = 0; x < 2; ++x)
      if (sharding.axis[x] >= 0 && axes[sharding.axis[x]].divides_parameters) parameters /= ranks(x);
    return parameters;
  }

  static Spec output_spec(const std::vector<NodeAxis>& axes, const NodeSharding& sharding) {
    Spec spec = {-1, -1};
    for (std::size_t x = 0; x < 2; ++x)
      if (sharding.axis[x] >= 0) spec[x] = axes[sharding.axis[x]].output.dimension;
    return spec;
  }

  static Spec input_spec(const std::vector<NodeAxis>& axes, const NodeSharding& sharding, std::size_t input) {
    Spec spec = {-1, -1};
    for (std::size_t x = 0; x < 2; ++x)
      if (sharding.axis[x] >= 0) spec[x] = axes[sharding.axis[x]].inputs[input].dimension;
    return spec;
  }

  /// Returns true if the dimensions hold whole parts for all devices.
  bool holds(const TensorShape& shape, const Spec& spec) const {
    for (std::size_t x = 0; x < 2; ++x) {
      if (spec[x] < 0) continue;
      const std::int64_t size = spec[x] == 0 ? question_.samples : shape.empty() ? 1 : shape[spec[x] - 1];
      const int parts = question_.mesh[x].ranks * (spec[1 - x] == spec[x] ? question_.mesh[1 - x].ranks : 1);
      if (size % parts != 0) return false;
    }
    return true;
  }

  bool is_offered(ShardingKind kind) const {
    return question_.kinds.empty() || std::ranges::find(question_.kinds, kind) != question_.kinds.end();
  }

  bool fits(int node, const std::vector<NodeAxis>& axes, const NodeSharding& sharding) const {
    for (std::size_t x = 0; x < 2; ++x) {
      if (sharding.axis[x] < 0) continue;
      const NodeAxis& axis = axes[sharding.axis[x]];
      const int ranks_of_axis =
          question_.mesh[x].ranks * (sharding.axis[1 - x] == sharding.axis[x] ? question_.mesh[1 - x].ranks : 1);
      const std::int64_t size = axis.size == 0 ? question_.samples : axis.size;
      if (size % ranks_of_axis != 0 || !is_offered(axis.kind)) return false;
    }
    if (!holds(nodes_[node].shape, output_spec(axes, sharding))) return false;
    for (std::size_t i = 0; i < nodes_[node].inputs.size(); ++i)
      if (!holds(nodes_[nodes_[node].inputs[i]].shape, input_spec(axes, sharding, i))) return false;
    return true;
  }

  std::vector<NodeSharding> choices_of(int node, const std::vector<NodeAxis>& axes) const {
    std::vector<NodeSharding> choices;
    const auto last = [&](std::size_t x) { return question_.mesh[x].ranks > 1 ? static_cast<int>(axes.size()) : 0; };
    for (int a = -1; a < last(0); ++a)
      for (int b = -1; b < last(1); ++b)
        if (fits(node, axes, {.axis = {a, b}})) choices.push_back({.axis = {a, b}});
    return choices;
  }

  /// Adds the choices of a node. Of those whose tensors lie alike only the cheapest is one.
  void add_node(int node, ShardingProblem& problem) {
    const std::vector<NodeAxis>& axes = problem.axes.back();
    const double whole = whole_seconds(node).count();
    std::map<std::vector<Spec>, std::size_t> by_specs;
    std::vector<NodeSharding> choices;
    std::vector<double> costs;
    for (const NodeSharding& choice : choices_of(node, axes)) {
      std::vector<Spec> specs = {output_spec(axes, choice)};
      for (std::size_t i = 0; i < nodes_[node].inputs.size(); ++i) specs.push_back(input_spec(axes, choice, i));
      const double cost = whole / divided(choice) + collectives(node, axes, choice) +
                          question_.seconds_per_parameter * parameters_held(node, axes, choice);
      const auto [found, is_new] = by_specs.try_emplace(std::move(specs), choices.size());
      if (is_new) {
        choices.push_back(choice);
        costs.push_back(cost);
      } else if (cost < costs[found->second]) {
        choices[found->second] = choice;
        costs[found->second] = cost;
      }
    }
    problem.choices.push_back(std::move(choices));
    problem.costs.costs.push_back(std::move(costs));
  }

  double collective(std::size_t x, CollectiveKind kind, double bytes) {
    const auto whole = static_cast<std::int64_t>(bytes);
    const auto [found, is_new] = seconds_.try_emplace({x, kind, whole}, 0);
    if (is_new) found->second = pricing_.collective_time(question_.mesh[x], kind, whole).count();
    return found->second;
  }

  double collectives(int node, const std::vector<NodeAxis>& axes, const NodeSharding& choice) {
    const double element = static_cast<double>(pricing_.kernels().element_bytes);
    double seconds = 0;
    for (std::size_t x = 0; x < 2; ++x) {
      if (choice.axis[x] < 0) continue;
      const NodeAxis& axis = axes[choice.axis[x]];
      const auto beside = [&](int dimension) { return dimension >= 0 ? ranks(1 - x) : 1.0; };
      const double output = tensor_elements(node) * element / beside(output_spec(axes, choice)[1 - x]);
      if (axis.output.summed) seconds += sum_seconds(x, axis.output.dimension, output);
      for (std::size_t i = 0; i < axis.inputs.size(); ++i) {
        const int source = nodes_[node].inputs[i];
        if (!axis.inputs[i].summed || !nodes_[source].needs_grad) continue;
        seconds += sum_seconds(x, axis.inputs[i].dimension,
                               tensor_elements(source) * element / beside(input_spec(axes, choice, i)[1 - x]));
      }
      for (const auto* extras : {&axis.forward, &axis.backward})
        for (const ExtraTraffic& extra : *extras) {
          if (extras == &axis.backward && !nodes_[node].needs_grad) continue;
          const double local = extra.kind == CollectiveKind::kAllToAll ? ranks(x) : 1;
          const double bytes = static_cast<double>(extra.elements) * static_cast<double>(question_.samples) * element;
          seconds += collective(x, extra.kind, bytes / beside(choice.axis[1 - x]) / local);
        }
      seconds += gradient_seconds(node, axes, choice, x);
    }
    return seconds;
  }

  /// Partial sums become whole tensors, or are stored divided: then the other pass gathers.
  double sum_seconds(std::size_t x, int dimension, double bytes) {
    if (dimension < 0) return collective(x, CollectiveKind::kAllReduce, bytes);
    return collective(x, CollectiveKind::kReduceScatter, bytes) + collective(x, CollectiveKind::kAllGather, bytes);
  }

  double gradient_seconds(int node, const std::vector<NodeAxis>& axes, const NodeSharding& choice, std::size_t x) {
    if (axes[choice.axis[x]].divides_parameters) return 0;
    double bytes =
        static_cast<double>(parameter_count(nodes_[node])) * static_cast<double>(pricing_.kernels().gradient_bytes);
    if (choice.axis[1 - x] >= 0 && axes[choice.axis[1 - x]].divides_parameters) bytes /= ranks(1 - x);
    if (bytes == 0) return 0;
    return collective(x, CollectiveKind::kAllReduce, bytes) / static_cast<double>(question_.microbatches);
  }

  /// Returns the time to read a tensor divided otherwise than it was made, and to bring its gradient back.
  double resharding(const Spec& from, const Spec& to, double bytes, bool gradient) {
    double least = kNever;
    for (const std::size_t first : {0, 1}) {  // the order of the two axes matters
      Spec now = from;
      double seconds = 0;
      for (const std::size_t x : {first, 1 - first}) {
        const double local = bytes / (now[1 - x] >= 0 ? ranks(1 - x) : 1);
        if (now[x] != to[x]) seconds += change_seconds(x, now[x], to[x], local, gradient);
        now[x] = to[x];
      }
      least = std::min(least, seconds);
    }
    return least;
  }

  double change_seconds(std::size_t x, int from, int to, double bytes, bool gradient) {
    if (from >= 0 && to >= 0) return (gradient ? 2 : 1) * collective(x, CollectiveKind::kAllToAll, bytes / ranks(x));
    const bool gathers = to < 0 || gradient;  // in the forward, or the sliced tensor's gradient in the backward
    return gathers ? collective(x, CollectiveKind::kAllGather, bytes) : 0;
  }

  void add_edge(int node, std::size_t input, ShardingProblem& problem) {
    const int source = nodes_[node].inputs[input];
    if (nodes_[source].op == "input") return;  // each device loads its own samples
    const std::size_t first = static_cast<std::size_t>(source - question_.begin);
    const std::size_t second = static_cast<std::size_t>(node - question_.begin);
    PairCost pair{.first = static_cast<int>(first), .second = static_cast<int>(second)};
    const double bytes = tensor_elements(source) * static_cast<double>(pricing_.kernels().element_bytes);
    std::map<std::pair<Spec, Spec>, double> known;
    for (const NodeSharding& a : problem.choices[first]) {
      for (const NodeSharding& b : problem.choices[second]) {
        const Spec from = output_spec(problem.axes[first], a), to = input_spec(problem.axes[second], b, input);
        const auto [found, is_new] = known.try_emplace({from, to}, 0);
        if (is_new) found->second = resharding(from, to, bytes, nodes_[source].needs_grad);
        pair.costs.push_back(found->second);
      }
    }
    problem.costs.pairs.push_back(std::move(pair));
  }

  Pricing& pricing_;
  const ShardingQuestion& question_;
  const std::vector<GraphNode>& nodes_;
  std::vector<bool> kept_;  ///< [node] its output stays for the backward
  std::map<std::tuple<std::size_t, CollectiveKind, std::int64_t>, double> seconds_;  ///< of collectives by mesh axis
};

}  // namespace

std::vector<bool> kept_outputs(const std::vector<GraphNode>& nodes) {
  std::vector<bool> kept(nodes.size(), false);
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    kept[node] = kept[node] || nodes[node].saves_output;
    for (std::size_t i = 0; i < nodes[node].inputs.size(); ++i)
      if (nodes[node].saves_input[i]) kept[nodes[node].inputs[i]] = true;
  }
  return kept;
}

ShardingProblem sharding_problem(Pricing& pricing, const ShardingQuestion& question) {
  return Builder(pricing, question).problem();
}

GraphSharding cheapest_sharding(Pricing& pricing, const ShardingQuestion& question) {
  const Builder builder(pricing, question);
  const ShardingProblem problem = sharding_problem(pricing, question);
  Assignment assignment = cheapest_assignment(problem.costs, question.most_entries);
  std::string method = "elimination";
  if (!assignment.exact && question.solver) {
    if (const std::optional<SolverAnswer> solution = question.solver(integer_program(problem.costs))) {
      assignment = solved(problem.costs, assignment, *solution);
      method = solution->solver;
    }
  }
  GraphSharding answer{.mesh = question.mesh,
                       .cost = Seconds{assignment.cost},
                       .bound = Seconds{assignment.bound},
                       .exact = assignment.exact,
                       .method = method};
  Seconds whole{0};
  for (std::size_t i = 0; i < problem.choices.size(); ++i) {
    answer.nodes.push_back(problem.choices[i][static_cast<std::size_t>(assignment.choices[i])]);
    answer.forward += builder.forward_seconds(question.begin + static_cast<int>(i));
    whole += builder.whole_seconds(question.begin + static_cast<int>(i));
    builder.add_memory(question.begin + static_cast<int>(i), problem.axes[i], answer.nodes.back(), answer);
  }
  const Seconds price{question.seconds_per_parameter * static_cast<double>(answer.parameters)};
  answer.cost -= price;
  answer.bound = std::max(Seconds{0}, answer.bound - price);
  if (whole.count() > 0) answer.forward *= answer.cost / whole;
  return answer;
}

std::string to_text(const std::vector<NodeAxis>& axes, const NodeSharding& sharding) {
  const auto name = [&](int axis) {
    return sharding_name(axis < 0 ? ShardingKind::kReplicate : axes[static_cast<std::size_t>(axis)].kind);
  };
  return fmt::format("{} x {}", name(sharding.axis[0]), name(sharding.axis[1]));
}

}}  // namespace plumb::planner
