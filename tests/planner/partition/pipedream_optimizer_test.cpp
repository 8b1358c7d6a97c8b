#include "planner/partition/pipedream_optimizer.h"

#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/partition/pipedream_profile.h"
#include "planner/partition/pipedream_states.h"
#include "tests/planner/partition/graphs.h"
#include "tests/shared_folder.h"

namespace plumb::test {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

using Table = std::vector<std::vector<std::vector<double>>>;  // [first state][last state][machines - 1]

/// Returns PipeDream's answer by filling its tables whole, level by level.
double by_whole_tables(const ProfiledGraph& graph, const PipedreamOptions& options) {
  const PipedreamStates states = pipedream_states(graph, "graph");
  const int count = static_cast<int>(states.nodes.size());
  const auto between = [&](const std::vector<double>& of, int i, int j) { return of[j] - (i > 0 ? of[i - 1] : 0); };
  const auto fits = [&](int i, int j, double held) {
    return !options.memory_bytes ||
           held * (between(states.activation_bytes, i, j) + between(states.weight_bytes, i, j)) <=
               *options.memory_bytes;
  };
  std::vector<std::vector<double>> alone(count + 1, std::vector<double>(count, kNone));
  for (int i = 0; i < count; ++i)
    for (int j = i; j < count; ++j) alone[i][j] = between(states.seconds, i, j);
  double within = 1;
  for (const MachineLevel& level : options.levels) {
    const int machines = level.count;
    const double rate = level.bytes_per_second;
    Table best(count + 1, std::vector(count, std::vector<double>(machines, kNone)));
    for (int i = 0; i < count; ++i) {
      for (int j = i; j < count; ++j) {
        for (int m = 1; m <= machines; ++m) {
          double& value = best[i][j][m - 1];
          const double summed = 4 * (m - 1) * between(states.weight_bytes, i, j) / (rate * m) / within;
          if ((m == 1 || !options.straight) && fits(i, j, std::ceil(static_cast<double>(machines - m) / m)))
            value = (alone[i][j] + summed) / m;
          if (options.fewer_machines && m > 1 && i < j) value = std::min(value, best[i][j][m - 2]);
          for (int k = i; k < j; ++k) {
            if (!states.nodes[k].is_subset_of(states.nodes[j])) continue;
            for (int r = 1; r < (options.straight ? std::min(m, 2) : m); ++r) {
              if (!fits(k + 1, j, std::ceil(static_cast<double>(machines - m) / r))) continue;
              double last = alone[k + 1][j] + 4 * (r - 1) * between(states.weight_bytes, k + 1, j) / (rate * r);
              last /= r;
              if (const auto ratio = options.compression_ratio) {
                last = std::max(last, 2 * states.output_bytes[k] / (rate * r) / *ratio);
                if (j + 1 < count) last = std::max(last, 2 * states.output_bytes[j] / (rate * r) / *ratio);
              }
              value = std::min(value, std::max(best[i][k][m - r - 1], last));
            }
          }
        }
      }
    }
    within = machines;
    for (int i = 0; i < count; ++i)
      for (int j = 0; j < count; ++j) alone[i][j] = best[i][j][machines - 1];
  }
  return alone[0][count - 1];
}

PipedreamOptions options_of(const nlohmann::json& run) {
  PipedreamOptions options;
  std::vector<int> machines;
  std::vector<double> rates;
  double memory = 16e9;
  bool memory_counts = false;
  std::string option;
  std::istringstream words(run["cfg"].get<std::string>() + " " + run["extra"].get<std::string>());
  for (std::string word; words >> word;) {
    if (word == "--straight_pipeline") options.straight = true;
    if (word == "--use_memory_constraint") memory_counts = true;
    if (word.starts_with("-")) option = word;
    if (word.starts_with("-")) continue;
    if (option == "-n") machines.push_back(std::stoi(word));
    if (option == "-b") rates.push_back(std::stod(word));
    if (option == "-s") memory = std::stod(word);
    if (option == "--activation_compression_ratio") options.compression_ratio = std::stod(word);
  }
  for (std::size_t level = 0; level < machines.size(); ++level)
    options.levels.push_back({.count = machines[level], .bytes_per_second = rates[level]});
  if (memory_counts) options.memory_bytes = memory;
  return options;
}

}  // namespace

TEST_CASE("the entries that are looked at give what the whole tables of PipeDream give") {
  std::mt19937 random(3);
  int split = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const ProfiledGraph graph = random_graph(random, 12);
    PipedreamOptions options;
    for (unsigned level = 0; level < 1 + random() % 3; ++level)
      options.levels.push_back({static_cast<int>(1 + random() % 4), 0.5 + static_cast<double>(random() % 9)});
    options.straight = random() % 6 == 0;
    options.fewer_machines = random() % 4 == 0;
    if (random() % 3 == 0) options.memory_bytes = static_cast<double>(10 + random() % 60);
    if (random() % 3 == 0) options.compression_ratio = static_cast<double>(1 + random() % 3);
    CAPTURE(trial);
    const auto partition = pipedream_partition(graph, options, "graph");
    const double expected = by_whole_tables(graph, options);
    REQUIRE(partition.has_value() == (expected < kNone));
    if (!partition) continue;
    CHECK(partition->slowest.count() == doctest::Approx(expected).epsilon(1e-12));
    std::size_t placed = 0;
    for (const MeasuredStage& stage : partition->stages) placed += stage.nodes.size();
    CHECK(placed == num_vertices(graph));
    split += partition->stages.size() > 1;
  }
  CHECK(split > 100);
}

TEST_CASE("PipeDream's memory check lets pure data parallelism fit whatever it needs") {
  const PipedreamOptions options{.levels = {{.count = 2, .bytes_per_second = 1e9}}, .memory_bytes = 0.5};
  ProfiledGraph graph = chain_graph({3, 1});
  graph[0].output_bytes = graph[1].output_bytes = 1;
  const auto partition = pipedream_partition(graph, options, "graph");
  REQUIRE(partition);
  REQUIRE(partition->stages.size() == 1);
  CHECK(partition->stages[0].replicas == 2);
}

TEST_SUITE("oracle") {
  TEST_CASE("every run of PipeDream's own optimizer has the time that it printed") {
    const std::optional<std::string> answers = shared_text("oracles/pipedream/runs.jsonl");
    if (!answers) return;
    std::istringstream runs(*answers);
    int compared = 0;
    for (std::string line; std::getline(runs, line); ++compared) {
      const nlohmann::json run = nlohmann::json::parse(line);
      CAPTURE(line);
      const std::string model = run["model"];
      const std::string text = shared_text("oracles/pipedream/" + model + ".graph.txt").value();
      const auto partition = pipedream_partition(parse_pipedream_profile(text, model), options_of(run), model);
      REQUIRE(partition);
      const double printed = std::stod(run["Tstage"].get<std::string>());
      CHECK(std::abs(partition->slowest.count() / printed - 1) < 1e-9);
    }
    CHECK(compared == 50);
  }
}

}  // namespace plumb::test
