#include "simulator/network/engine/event_numbers.h"

namespace plumb { inline namespace simulator {

EventNumbering numbering(const EventProgram& program, const NetworkSpec& network) {
  const auto stretches = static_cast<std::int32_t>(program.stretches.stretches.size());
  const auto inner = static_cast<std::int32_t>(network.inner.size());
  EventNumbering row;
  row.latency = row.alone + program.actions;
  row.rate = row.latency + program.actions;
  row.inside = row.rate + program.actions;
  row.stretch = row.inside + static_cast<std::int32_t>(program.inside.size());
  row.inner_rate = row.stretch + stretches;
  row.capacity = row.inner_rate + stretches * inner;
  row.count = row.capacity + static_cast<std::int32_t>(network.links.size());
  return row;
}

std::vector<double> numbers_of(const EventProgram& program, const NetworkSpec& network) {
  std::vector<double> numbers;
  numbers.reserve(static_cast<std::size_t>(numbering(program, network).count));
  const auto add_times = [&numbers](const std::vector<SimTime>& times) {
    for (const SimTime time : times) numbers.push_back(static_cast<double>(time.count()));
  };
  add_times(program.alone);
  add_times(program.latency);
  numbers.insert(numbers.end(), program.rate.begin(), program.rate.end());
  add_times(program.inside);
  for (const Stretch& stretch : program.stretches.stretches)
    numbers.push_back(static_cast<double>(stretch.lasts.count()));
  for (const Stretch& stretch : program.stretches.stretches) {
    for (const InnerCollective& flow : network.inner) numbers.push_back(inner_rate(flow, stretch.bytes_per_second));
  }
  for (const NetworkLink& link : network.links) numbers.push_back(link.bytes_per_second);
  return numbers;
}

}}  // namespace plumb::simulator
