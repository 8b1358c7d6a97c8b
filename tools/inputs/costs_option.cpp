#include "tools/inputs/costs_option.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/forms/whole_number.h"
#include "schedules/nearest_name.h"

namespace plumb { inline namespace tools {
namespace {

constexpr std::string_view kUnitKey = "unit";
constexpr std::string_view kMessageKey = "mib";
constexpr std::string_view kBandwidthKey = "gb_per_s";
constexpr std::string_view kHostKey = "host";
constexpr double kBytesPerMib = 1024.0 * 1024.0;
constexpr double kBytesPerGb = 1e9;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

TimeUnit parse_unit(std::string_view name) {
  static const std::map<std::string_view, double> kUnits = {
      {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"ps", 1e-12}};
  const auto it = kUnits.find(name);
  if (it == kUnits.end()) throw SpecError(fmt::format("--costs: unit={}: give s, ms, us, ns or ps", name));
  return {.name = std::string(name), .seconds = it->second};
}

std::vector<double> parse_numbers(std::string_view key, std::string_view list) {
  std::vector<double> numbers;
  for (const std::string_view item : split(list, ':')) {
    const auto value = whole_number<double>(item);
    if (!value || *value < 0) {
      throw SpecError(fmt::format("--costs: {}={}: \"{}\" is no cost: give numbers of 0 or more, as in {}=1 or {}=1:2",
                                  key, list, item, key, key));
    }
    numbers.push_back(*value);
  }
  return numbers;
}

/// Throws SpecError if a list is neither one nor one for each link, perhaps with that from the last rank to the first.
void require_links(std::size_t given, int ranks, std::string_view what) {
  if (ranks == 2 && given == 2)
    throw SpecError(fmt::format("--costs: {} for 2 ranks, which have one link between them: give one", what));
  if (given == static_cast<std::size_t>(ranks) || given + 1 == static_cast<std::size_t>(ranks)) return;
  throw SpecError(
      fmt::format("--costs: {} for {} ranks: give one, one for each of the {} links between "
                  "neighbours, or {} with that from the last rank to the first",
                  what, ranks, ranks - 1, ranks));
}

/// Gives each pair of neighbouring ranks its latency and bandwidth, in both directions.
void add_links(CostTable& costs, const CostsOption& option, int ranks) {
  const std::vector<Seconds>& latencies = option.link_latencies;
  const std::vector<double>& bandwidths = option.bytes_per_second;
  if (bandwidths.size() == 1) costs.default_link.bytes_per_second = bandwidths.front();
  if (latencies.empty() && bandwidths.size() <= 1) return;
  const std::size_t given = std::max(latencies.size(), bandwidths.size());
  require_links(given, ranks, fmt::format("c= has {} latencies", given));
  for (std::size_t r = 0; r < given; ++r) {
    const auto from = static_cast<int>(r);
    const int next = (from + 1) % ranks;
    LinkCost link = costs.default_link;
    if (!latencies.empty()) link.latency = latencies[r];
    if (bandwidths.size() > 1) link.bytes_per_second = bandwidths[r];
    costs.links[{from, next}] = costs.links[{next, from}] = link;
  }
}

/// Returns the entry of a stage in a list of one entry, or of one for each stage.
template <typename Number>
Number at_stage(const std::vector<Number>& list, int stage) {
  return list[list.size() == 1 ? 0 : static_cast<std::size_t>(stage)];
}

/// The gradient of a stage's input is as large as that input, which is the message of the stage before it.
void add_messages(CostTable& costs, const std::vector<double>& bytes, const Schedule& schedule) {
  if (bytes.empty()) return;
  const StageNeighbors neighbors = stage_neighbors(schedule);
  for (int s = 0; s < static_cast<int>(costs.stages.size()); ++s) {
    const int before = neighbors.predecessor[s];
    costs.stages[s].activation_message_bytes = std::llround(at_stage(bytes, s));
    costs.stages[s].gradient_message_bytes = std::llround(at_stage(bytes, before < 0 ? s : before));
  }
}

void add_activations(CostTable& costs, const ActivationMemory& memory) {
  if (memory.activation_bytes.empty()) return;
  for (int s = 0; s < static_cast<int>(costs.stages.size()); ++s) {
    costs.stages[s].memory.forward_bytes = at_stage(memory.activation_bytes, s);
    costs.stages[s].memory.released_at_input_grad_bytes = at_stage(memory.released_at_input_grad_bytes, s);
  }
}

/// Returns the costs with a list that has one entry a model part as one with one entry a stage.
ChunkCosts of_stages(ChunkCosts chunk, const Schedule& schedule) {
  std::size_t parts = 0;
  for (const StagePlace& place : schedule.stages)
    parts = std::max(parts, static_cast<std::size_t>(place.model_part) + 1);
  for (std::vector<Seconds>* list :
       {&chunk.forward, &chunk.input_grad, &chunk.weight_grad, &chunk.backward, &chunk.recompute, &chunk.optimizer,
        &chunk.move, &chunk.unshard, &chunk.reduce_grad}) {
    if (list->size() <= 1 || list->size() == schedule.stages.size()) continue;
    if (list->size() != parts && parts < schedule.stages.size()) {
      throw SpecError(
          fmt::format("a list of --costs has {} entries for the {} stages of {} model parts: give one, one for each "
                      "part, or one for each stage",
                      list->size(), schedule.stages.size(), parts));
    }
    if (list->size() != parts) continue;  // chunk_cost_table refuses it by its key
    std::vector<Seconds> by_stage;
    for (const StagePlace& place : schedule.stages)
      by_stage.push_back((*list)[static_cast<std::size_t>(place.model_part)]);
    *list = std::move(by_stage);
  }
  return chunk;
}

}  // namespace

CostsOption parse_costs(std::string_view text) {
  CostsOption option;
  ChunkCosts& chunk = option.chunk;
  std::vector<Seconds> hop{Seconds{0}};
  const std::map<std::string, std::vector<Seconds>*, std::less<>> lists = {{"f", &chunk.forward},
                                                                           {"i", &chunk.input_grad},
                                                                           {"w", &chunk.weight_grad},
                                                                           {"b", &chunk.backward},
                                                                           {"r", &chunk.recompute},
                                                                           {"o", &chunk.optimizer},
                                                                           {"x", &chunk.move},
                                                                           {"u", &chunk.unshard},
                                                                           {"g", &chunk.reduce_grad},
                                                                           {"weights", &chunk.weights},
                                                                           {"c", &hop}};
  std::map<std::string, std::vector<double>, std::less<>> given;
  for (const std::string_view entry : split(text, ',')) {
    const std::size_t equals = entry.find('=');
    const std::string_view key = entry.substr(0, equals);
    if (equals == std::string_view::npos)
      throw SpecError(fmt::format("--costs: \"{}\" has no value: write KEY=NUMBER, as in f=1", entry));
    if (key == kUnitKey) {
      option.unit = parse_unit(entry.substr(equals + 1));
      continue;
    }
    if (!lists.contains(key) && key != kMessageKey && key != kBandwidthKey && key != kHostKey) {
      throw SpecError(fmt::format("--costs: \"{}\" is not known: {}", key,
                                  did_you_mean(key, {"f", "i", "w", "b", "r", "o", "x", "u", "g", "c", "weights",
                                                     "unit", "mib", "gb_per_s", "host"})));
    }
    if (!given.emplace(key, parse_numbers(key, entry.substr(equals + 1))).second) {
      throw SpecError(fmt::format("--costs: {} is given twice: keep one", key));
    }
  }
  const auto one_number = [&](std::string_view key) {
    const auto entry = given.find(key);
    const std::vector<double> numbers = entry->second;
    given.erase(entry);
    if (numbers.size() != 1 || numbers[0] == 0)
      throw SpecError(fmt::format("--costs: {}= is one number above 0{}: give one", key,
                                  key == kHostKey ? "" : " for every message"));
    return numbers[0];
  };
  if (given.contains(kMessageKey) != given.contains(kBandwidthKey))
    throw SpecError("--costs: mib= and gb_per_s= go together: give the size of a message and the bandwidth of a hop");
  if (given.contains(kMessageKey)) {
    constexpr double kMostBytes = 1e18;
    option.message_bytes = {one_number(kMessageKey) * kBytesPerMib};
    if (!(option.message_bytes.front() <= kMostBytes))
      throw SpecError(fmt::format("--costs: mib= is a message of {:g} bytes: give at most {:g} MiB",
                                  option.message_bytes.front(), kMostBytes / kBytesPerMib));
    option.bytes_per_second = {one_number(kBandwidthKey) * kBytesPerGb};
  }
  if (given.contains(kHostKey)) option.host_moves = one_number(kHostKey);
  for (const auto& [key, numbers] : given) {
    lists.find(key)->second->clear();
    for (const double number : numbers) {
      const Seconds time{number * option.unit.seconds};
      to_sim_time(time, fmt::format("--costs: a {}=", key));
      lists.find(key)->second->push_back(time);
    }
  }
  // A time that is not given is one of the user's units, not one second.
  for (std::vector<Seconds>* list : {&chunk.forward, &chunk.input_grad, &chunk.weight_grad}) {
    const bool was_given =
        std::ranges::any_of(given, [&](const auto& entry) { return lists.find(entry.first)->second == list; });
    if (!was_given) *list = {Seconds{option.unit.seconds}};
  }
  chunk.hop_latency = *std::ranges::max_element(hop);
  if (hop.size() > 1) option.link_latencies = hop;
  option.whole_backward = given.contains("b");
  return option;
}

CostTable costs_for(const CostsOption& option, const Schedule& schedule) {
  if (option.whole_backward) {
    for (const auto& actions : schedule.ranks) {
      for (const Action& action : actions) {
        if (action.op == Op::kInputGrad || action.op == Op::kWeightGrad) {
          throw SpecError(fmt::format("--costs: b= prices whole backwards, but {} splits them ({}): give i= and w=",
                                      schedule.name.empty() ? "the schedule" : schedule.name, to_text(action)));
        }
      }
    }
  }
  CostTable costs = chunk_cost_table(static_cast<int>(schedule.stages.size()), of_stages(option.chunk, schedule));
  add_links(costs, option, static_cast<int>(schedule.ranks.size()));
  add_messages(costs, option.message_bytes, schedule);
  add_activations(costs, option.memory);
  return costs;
}

}}  // namespace plumb::tools
