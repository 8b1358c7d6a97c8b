#include "simulator/network/flow/derivative_tape.h"

#include <stdexcept>

namespace plumb { inline namespace simulator {
namespace {

constexpr std::size_t kMostTerms = std::size_t{1} << 26;

}  // namespace

DerivativeTape::Node DerivativeTape::add(const Term* first, const Term* end) {
  for (; first != end; ++first) {
    if (first->what != kConstant && first->coefficient != 0) terms_.push_back(*first);
  }
  if (terms_.size() > kMostTerms) throw std::length_error("more derivatives than a tape holds");
  first_term_.push_back(static_cast<std::int64_t>(terms_.size()));
  return static_cast<Node>(first_term_.size()) - 2;
}

std::vector<double> DerivativeTape::gradient(Node node, std::size_t numbers) const {
  std::vector<double> by_number(numbers, 0.0);
  if (node == kConstant) return by_number;
  std::vector<double> by_node(static_cast<std::size_t>(node) + 1, 0.0);
  by_node[node] = 1;
  for (Node at = node; at >= 0; --at) {
    if (by_node[at] == 0) continue;
    for (std::int64_t t = first_term_[at]; t < first_term_[at + 1]; ++t) {
      const Term& term = terms_[t];
      (term.what >= 0 ? by_node[term.what] : by_number[-2 - term.what]) += term.coefficient * by_node[at];
    }
  }
  return by_number;
}

}}  // namespace plumb::simulator
