#include "kernels/cpu/optimizers/adafactor.h"

#include <doctest/doctest.h>

#include "tests/kernels/cpu/checks.h"

namespace plumb::test {
namespace {

double rms(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

constexpr Adafactor kClippedAdafactor{.learning_rate = 0.05F, .clipping_threshold = 1.0F, .weight_decay = 0.1F};

/// Subtracts lr max(e2, rms(w)) u / max(1, rms(u)) + lr decay w from w.
void expect_update(std::vector<double>& w, const std::vector<double>& u) {
  const double step = 0.05 * std::max(1e-3, rms(w)) / std::max(1.0, rms(u));
  for (std::size_t i = 0; i < w.size(); ++i) w[i] -= step * u[i] + 0.05 * 0.1 * w[i];
}

}  // namespace

TEST_CASE("Adafactor on a matrix agrees with the paper's recurrence in double, and zeroes the gradients") {
  constexpr std::size_t kRows = 5, kColumns = 7;
  Values w = random_values(kRows * kColumns, 1), rows(kRows, 0.0F), columns(kColumns, 0.0F);
  std::vector<double> expected(w.begin(), w.end()), drows(kRows, 0), dcolumns(kColumns, 0);
  for (unsigned step = 1; step <= 3; ++step) {
    Values g = random_values(kRows * kColumns, 10 + step);
    const double decay = 1 - std::pow(double(step), -0.8);
    for (double& sum : drows) sum *= decay;
    for (double& sum : dcolumns) sum *= decay;
    for (std::size_t r = 0; r < kRows; ++r)
      for (std::size_t c = 0; c < kColumns; ++c) {
        const double square = double(g[r * kColumns + c]) * double(g[r * kColumns + c]);
        drows[r] += (1 - decay) * square;
        dcolumns[c] += (1 - decay) * square;
      }
    double total = 0;
    for (const double sum : drows) total += sum;
    std::vector<double> u;
    for (std::size_t r = 0; r < kRows; ++r)
      for (std::size_t c = 0; c < kColumns; ++c)
        u.push_back(double(g[r * kColumns + c]) / std::sqrt(drows[r] * dcolumns[c] / total));
    expect_update(expected, u);
    adafactor_update_matrix(w.data(), g.data(), rows.data(), columns.data(), kRows, kColumns, kClippedAdafactor, step);
    CHECK(g == Values(kRows * kColumns, 0.0F));
  }
  for (std::size_t i = 0; i < w.size(); ++i) CHECK(w[i] == doctest::Approx(expected[i]).epsilon(1e-5));
}

TEST_CASE("Adafactor on a vector keeps every element's second moment") {
  Values w = random_values(9, 1), v(9, 0.0F);
  std::vector<double> expected(w.begin(), w.end()), dv(9, 0);
  for (unsigned step = 1; step <= 3; ++step) {
    Values g = random_values(9, 20 + step);
    const double decay = 1 - std::pow(double(step), -0.8);
    std::vector<double> u;
    for (std::size_t i = 0; i < 9; ++i) {
      dv[i] = decay * dv[i] + (1 - decay) * double(g[i]) * double(g[i]);
      u.push_back(double(g[i]) / std::sqrt(dv[i]));
    }
    expect_update(expected, u);
    adafactor_update_vector(w.data(), g.data(), v.data(), 9, kClippedAdafactor, step);
    CHECK(g == Values(9, 0.0F));
  }
  for (std::size_t i = 0; i < 9; ++i) CHECK(w[i] == doctest::Approx(expected[i]).epsilon(1e-5));
}

TEST_CASE("Adafactor without any gradient stays finite") {
  Values w = random_values(6, 1), g(6, 0.0F), rows(2, 0.0F), columns(3, 0.0F);
  adafactor_update_matrix(w.data(), g.data(), rows.data(), columns.data(), 2, 3, {}, 1);
  for (const float value : w) CHECK(std::isfinite(value));
}

}  // namespace plumb::test
