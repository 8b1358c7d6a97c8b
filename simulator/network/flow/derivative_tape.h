#pragma once
// Records how times depend on the numbers that they are made of: every moment is a linear function of earlier ones,
// from which one pass backwards gives the derivative of the last by every number that went in.
//
//   DerivativeTape tape;
//   const auto end = tape.add({DerivativeTape::of(start, 1), DerivativeTape::by(duration_number, 1)});
//   tape.gradient(end, numbers)[duration_number] -> 1
//
// Source: reverse accumulation (Griewank & Walther 2008, Evaluating Derivatives, section 3.2).

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace plumb { inline namespace simulator {

class DerivativeTape {
 public:
  using Node = std::int32_t;
  static constexpr Node kConstant = -1;  ///< depends on nothing

  /// Adds up as `coefficient` times a node, or times a number that went in.
  struct Term {
    std::int32_t what = kConstant;
    double coefficient = 0;
  };
  static Term of(Node node, double coefficient) { return {node, coefficient}; }
  static Term by(std::int32_t number, double coefficient) { return {-2 - number, coefficient}; }

  /// Adds the sum of the terms, whose nodes must be there already. Throws std::length_error beyond 2^26 terms, a
  /// gibibyte.
  Node add(std::initializer_list<Term> terms) { return add(terms.begin(), terms.end()); }
  Node add(const std::vector<Term>& terms) { return add(terms.data(), terms.data() + terms.size()); }

  /// Returns [number] the derivative of `node`.
  std::vector<double> gradient(Node node, std::size_t numbers) const;

  Node now = kConstant;   ///< the moment that an engine is at
  Node last = kConstant;  ///< the latest end so far

 private:
  Node add(const Term* first, const Term* end);

  std::vector<std::int64_t> first_term_{0};  ///< [node + 1]
  std::vector<Term> terms_;
};

}}  // namespace plumb::simulator
