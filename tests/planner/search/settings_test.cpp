#include "planner/search/settings.h"

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <tuple>

#include <doctest/doctest.h>

#include "planner/evaluate/noisy_evaluation.h"
#include "planner/search/bounds.h"
#include "planner/search/layout_tree.h"
#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

/// A layout of a setting as simulated on shared links, of those that fit.
struct Simulated {
  std::size_t setting = 0;
  Layout layout;
  double value = 0;
};

/// Returns the best layout of each family of each setting by `value_of`, the least first; without a search.
template <typename ValueOf>
std::vector<Simulated> every_family(const ModelSpec& model, const std::vector<Setting>& settings,
                                    const LayoutSpace& space, const ValueOf& value_of) {
  std::vector<Simulated> all;
  for (std::size_t setting = 0; setting < settings.size(); ++setting) {
    Pricing pricing(model, settings[setting].cluster, settings[setting].training);
    for (const Layout& layout : enumerate_layouts(pricing, space).layouts) {
      const Evaluation step = evaluate(pricing, layout, {.network = NetworkOptions{}});
      if (memory_shortfall(step.simulation.peak_memory_bytes, pricing.cluster().device)) continue;
      all.push_back({setting, layout, value_of(pricing.cluster(), step)});
    }
  }
  std::ranges::stable_sort(all, {}, &Simulated::value);
  std::vector<Simulated> best;
  for (const Simulated& one : all) {
    const auto same = [&](const Simulated& other) {
      return other.setting == one.setting && family_of(other.layout) == family_of(one.layout);
    };
    if (std::ranges::none_of(best, same)) best.push_back(one);
  }
  return best;
}

double step_of(const ClusterSpec&, const Evaluation& step) {
  return SearchObjective{}.value(step);
}

double usd_of(const ClusterSpec& cluster, const Evaluation& step) {
  return least_cost(cluster).value(step);
}

double joules_of(const ClusterSpec& cluster, const Evaluation& step) {
  return least_energy(cluster).value(step);
}

/// A small question with random sizes, and settings that differ in devices and precision.
struct SmallQuestion {
  ModelSpec model = small_gpt();
  std::vector<Setting> settings;
  LayoutSpace space;
};

SmallQuestion random_question(std::mt19937& random) {
  const auto any = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  SmallQuestion question;
  question.model.layers = any(4, 6);
  question.space = parse_layout(any("mbs=1,zero=1", "mbs=2,sp=0,recompute=none", "schedule=1f1b,sp=0,zero=0"));
  ClusterSpec cluster = round_cluster(8);
  cluster.network->bytes_per_second = any(1e9, 10e9);
  cluster.device.memory_bytes = std::int64_t{any(800, 1600, 4000)} << 20;
  cluster.operation = {.usd_per_device_hour = 2, .idle_watts = any(20.0, 300.0), .busy_watts = 500, .pue = 1.2};
  const std::int64_t batch = any(8, 16);
  for (const int devices : {2, 4, 8}) {
    for (const Precision precision : {Precision::kBf16, Precision::kFp32}) {
      question.settings.push_back(
          {resize(cluster, devices), {.global_batch = batch, .sequence = 128, .precision = precision}});
    }
  }
  return question;
}

void check_rows(const SettingsResult& found, const std::vector<Simulated>& all, int keep) {
  const std::size_t rows = std::min<std::size_t>(all.size(), static_cast<std::size_t>(keep));
  REQUIRE(found.rows.size() == rows);
  for (std::size_t row = 0; row < rows; ++row) {
    CAPTURE(row);
    const SettingRow& one = found.rows[row];
    CHECK(one.value == all[row].value);
    CHECK(one.setting == all[row].setting);
    CHECK(found.searched[one.setting].search.ranked[one.row].layout == all[row].layout);
  }
}

}  // namespace

TEST_CASE("time, money and energy find in several settings the rows that simulating every layout of each finds") {
  std::mt19937 random(5);
  int other_than_fastest = 0;
  for (int draw = 0; draw < 12; ++draw) {
    CAPTURE(draw);
    const auto [model, settings, space] = random_question(random);
    const auto by_time = every_family(model, settings, space, step_of);
    const auto by_usd = every_family(model, settings, space, usd_of);
    const auto by_joules = every_family(model, settings, space, joules_of);
    for (const int keep : {1, 7}) {
      const auto rows_for = [&](Goal goal) {
        return search_settings(model, settings, {}, space, {.goal = goal, .search = {.keep = keep}});
      };
      check_rows(rows_for(Goal::kTime), by_time, keep);
      check_rows(rows_for(Goal::kCost), by_usd, keep);
      check_rows(rows_for(Goal::kEnergy), by_joules, keep);
    }
    if (by_joules.empty()) continue;
    const std::size_t setting = by_joules.front().setting;
    const auto fastest = std::ranges::find(by_time, setting, &Simulated::setting);
    other_than_fastest += by_joules.front().layout != fastest->layout ? 1 : 0;
  }
  CHECK(other_than_fastest > 0);  // energy is no other name of time
}

TEST_CASE("the p95 of steps under noise finds the rows that drawing every layout finds") {
  std::mt19937 random(6);
  const NoiseSpec noise{.cv = 0.2, .rank_cv = 0.1, .runs = 100};
  const auto p95 = [&](const ClusterSpec&, const Evaluation& step) {
    return seconds(percentile(noisy_steps_of(step, noise).makespans, 95));
  };
  for (int draw = 0; draw < 4; ++draw) {
    CAPTURE(draw);
    SmallQuestion question = random_question(random);
    question.settings.resize(3);
    const auto all = every_family(question.model, question.settings, question.space, p95);
    const SettingsOptions options{.goal = Goal::kRobust, .noise = noise, .search = {.keep = 3}};
    check_rows(search_settings(question.model, question.settings, {}, question.space, options), all, 3);
  }
}

TEST_CASE("a deadline is met by the fewest devices that can") {
  std::mt19937 random(7);
  int met = 0;
  for (int draw = 0; draw < 12; ++draw) {
    CAPTURE(draw);
    const auto [model, settings, space] = random_question(random);
    auto all = every_family(model, settings, space, step_of);
    if (all.empty()) continue;
    const double longest = all[random() % all.size()].value;
    std::erase_if(all, [&](const Simulated& one) { return one.value > longest; });
    int fewest = std::numeric_limits<int>::max();
    for (const Simulated& one : all) fewest = std::min(fewest, settings[one.setting].cluster.devices);
    std::erase_if(all, [&](const Simulated& one) { return settings[one.setting].cluster.devices != fewest; });
    const SettingsOptions options{.goal = Goal::kDevices, .longest_step = Seconds{longest}, .search = {.keep = 5}};
    check_rows(search_settings(model, settings, {}, space, options), all, 5);
    met += fewest < 8 ? 1 : 0;
    const SettingsOptions too_soon{.goal = Goal::kDevices, .longest_step = Seconds{1e-6}};
    const SettingsResult none = search_settings(model, settings, {}, space, too_soon);
    CHECK(none.rows.empty());
    CHECK(none.searched.size() == settings.size());
    CHECK(none.searched.back().search.limited);
  }
  CHECK(met > 2);
}

TEST_CASE("the front of devices has each number of devices that is faster than fewer") {
  std::mt19937 random(8);
  std::size_t points = 0;
  for (int draw = 0; draw < 12; ++draw) {
    CAPTURE(draw);
    const auto [model, settings, space] = random_question(random);
    const auto all = every_family(model, settings, space, step_of);
    std::vector<Simulated> front;
    for (const int devices : {2, 4, 8}) {
      const auto best = std::ranges::find_if(
          all, [&](const Simulated& one) { return settings[one.setting].cluster.devices == devices; });
      if (best != all.end() && (front.empty() || best->value < front.back().value)) front.push_back(*best);
    }
    std::ranges::reverse(front);  // the shortest step first
    check_rows(search_settings(model, settings, {}, space, {.goal = Goal::kFront}), front, 3);
    points += front.size();
  }
  CHECK(points > 12);
}

TEST_CASE("devices are taken as divisors of a node and as full nodes") {
  CHECK(device_counts(round_cluster(16)) == std::vector{1, 2, 4, 8, 12, 16});
  CHECK(device_counts(round_cluster(2)) == std::vector{1, 2});
  const ClusterSpec rack = preset_cluster("gb200-nvl72:144");
  CHECK(device_counts(rack).back() == 144);
  for (const int devices : device_counts(rack)) CHECK(resize(rack, devices).devices == devices);
}

TEST_CASE("a goal whose figures the cluster has not names the option that gives them") {
  const std::vector<Setting> settings{{round_cluster(2), kSmallTraining}};
  const auto search = [&](Goal goal, const NoiseSpec& noise = {}) {
    search_settings(small_gpt(), settings, {}, {}, {.goal = goal, .noise = noise});
  };
  check_refused<SpecError>([&] { search(Goal::kCost); }, "round", "--price");
  check_refused<SpecError>([&] { search(Goal::kEnergy); }, "round", "--power");
  check_refused<SpecError>([&] { search(Goal::kRobust, {.cv = 0.1, .runs = 20}); }, "--noise", "runs=100");
}

}  // namespace plumb::test
