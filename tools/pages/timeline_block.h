#pragma once
// Timelines on a page: a lane for what each rank computes, and others for its messages and collectives.

#include <string>
#include <vector>

#include "tools/pages/page.h"
#include "traces/timeline.h"

namespace plumb { inline namespace tools {

/// A timeline, and the word that its lanes bear.
struct NamedTimeline {
  std::string name;  ///< "predicted"; empty where it is the only one
  const Timeline* timeline = nullptr;
};

void add_timeline(Page& page, const std::string& title, const Timeline& timeline);

/// Adds timelines of one schedule in one picture with one scale, each rank's below each other.
void add_timelines(Page& page, const std::string& title, const std::vector<NamedTimeline>& timelines);

}}  // namespace plumb::tools
