#include "tools/pages/timeline_block.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>

#include "traces/draw/svg_style.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

/// Returns the bytes of the values, in the order of this machine, as base64.
template <typename Value>
std::string base64(const std::vector<Value>& values) {
  using namespace boost::archive::iterators;
  const auto* first = reinterpret_cast<const char*>(values.data());
  std::string bytes(first, values.size() * sizeof(Value));
  const std::size_t missing = (3 - bytes.size() % 3) % 3;
  bytes.append(missing, '\0');
  using Letters = base64_from_binary<transform_width<std::string::const_iterator, 6, 8>>;
  std::string text(Letters(bytes.cbegin()), Letters(bytes.cend()));
  std::fill_n(text.rbegin(), missing, '=');
  return text;
}

/// The slices of a lane, as arrays.
struct Lane {
  std::string name;
  std::vector<double> start, end;  ///< seconds
  std::vector<std::uint8_t> kind;  ///< [Op]
  std::vector<std::uint16_t> stage;
  std::vector<std::int32_t> microbatch;
};

void add_span(Lane& lane, const Span& span) {
  lane.start.push_back(to_seconds(span.start).count());
  lane.end.push_back(to_seconds(span.end).count());
  lane.kind.push_back(static_cast<std::uint8_t>(span.action.op));
  lane.stage.push_back(static_cast<std::uint16_t>(span.action.stage));
  lane.microbatch.push_back(span.action.microbatch);
}

/// Returns lanes in which no two slices overlap, for the spans that are taken.
template <typename Take>
std::vector<Lane> lanes_of(const RankTimeline& rank, const std::string& name, const Take& take) {
  std::vector<const Span*> spans;
  for (const Span& span : rank.spans)
    if (take(span) && span.end > span.start) spans.push_back(&span);
  std::ranges::stable_sort(spans, {}, &Span::start);
  std::vector<Lane> lanes;
  std::vector<SimTime> ends;
  for (const Span* span : spans) {
    std::size_t lane = 0;
    while (lane < ends.size() && ends[lane] > span->start) ++lane;
    if (lane == ends.size()) {
      lanes.push_back({.name = lane == 0 ? name : ""});
      ends.emplace_back();
    }
    add_span(lanes[lane], *span);
    ends[lane] = span->end;
  }
  return lanes;
}

ordered_json lane_json(const Lane& lane) {
  return {{"name", lane.name},         {"start", base64(lane.start)}, {"end", base64(lane.end)},
          {"kind", base64(lane.kind)}, {"stage", base64(lane.stage)}, {"microbatch", base64(lane.microbatch)}};
}

/// Returns the lanes of a rank: what it computes, and its messages and collectives where it has some.
std::vector<Lane> lanes_of_rank(const RankTimeline& rank, const std::string& name) {
  std::vector<Lane> lanes = lanes_of(rank, name, [](const Span& span) { return span.stream == Stream::kCompute; });
  for (const Stream stream : {Stream::kSend, Stream::kCollective}) {
    const auto moves = [stream](const Span& span) { return span.stream == stream; };
    std::ranges::move(lanes_of(rank, std::string(stream_name(stream)), moves), std::back_inserter(lanes));
  }
  return lanes;
}

using UsedOps = std::array<bool, kOpCount>;  ///< [Op] some slice is of it

/// Returns "F forward" of what occupies a rank, and the name of another operation.
std::string_view label_of(Op op) {
  const auto found = std::ranges::find(kOpColors, op, &OpColor::op);
  return found == kOpColors.end() ? op_name(op) : found->label;
}

ordered_json kinds_json(const UsedOps& used) {
  ordered_json kinds = ordered_json::array();
  for (int op = 0; op < kOpCount; ++op) {
    kinds.push_back({{"name", label_of(static_cast<Op>(op))},
                     {"color", color_of(static_cast<Op>(op))},
                     {"ink", ink_on(color_of(static_cast<Op>(op)))},
                     {"used", used[static_cast<std::size_t>(op)]}});
  }
  return kinds;
}

}  // namespace

void add_timelines(Page& page, const std::string& title, const std::vector<NamedTimeline>& timelines) {
  ordered_json lanes = ordered_json::array(), stages = ordered_json::array();
  SimTime end{0};
  UsedOps used{};
  const Timeline& first = *timelines.front().timeline;
  for (std::size_t rank = 0; rank < first.ranks.size(); ++rank) {
    for (const NamedTimeline& one : timelines) {
      const RankTimeline& of_rank = one.timeline->ranks[rank];
      const std::string name = fmt::format("rank {}{}{}", rank, one.name.empty() ? "" : " ", one.name);
      for (const Lane& lane : lanes_of_rank(of_rank, name)) lanes.push_back(lane_json(lane));
      for (const Span& span : of_rank.spans) {
        end = std::max(end, span.end);
        used[static_cast<std::size_t>(span.action.op)] |= span.stream != Stream::kReceive && span.end > span.start;
      }
    }
  }
  for (std::size_t stage = 0; stage < first.stages.size(); ++stage)
    stages.push_back(stage_name(first, static_cast<int>(stage)));
  add_block(page, "timeline", title,
            {{"end", to_seconds(end).count()}, {"kinds", kinds_json(used)}, {"stages", stages}, {"lanes", lanes}});
}

void add_timeline(Page& page, const std::string& title, const Timeline& timeline) {
  add_timelines(page, title, {{.timeline = &timeline}});
}

}}  // namespace plumb::tools
