#pragma once
// Memory that the fullest rank of a core's layouts holds at least, before a stage of them is priced.

#include <cstdint>

#include "planner/price/pricing.h"
#include "planner/search/skeletons.h"
#include "planner/spec/layout.h"

namespace plumb { inline namespace planner {

/// Returns bytes that the fullest rank of every layout of the core holds that offloads as much as `core`, whatever the
/// split. Let S be the state of all
/// layers and A the activations of a micro-batch in them. A rank holds the state of its v stages, and in the backward of
/// one of them its activations, which are the mean of theirs or more for one stage. The fullest of p ranks holds the mean
/// of the ranks or more: S / p + A / (p v). It is 0 for layer graphs, on devices of Plumb's own executor, and where an
/// order has copies of stages, moves activations between ranks, or has no backwards. What is offloaded counts as nothing.
std::int64_t least_peak_bytes(Pricing& pricing, const Layout& core, const Skeleton& skeleton);

/// Returns the variant of a layout that holds least on every rank: all replicas share what ZeRO divides, and the
/// optimizer's state is in the hosts, whether the framework can or not.
Layout most_frugal_variant(Layout layout);

}}  // namespace plumb::planner
