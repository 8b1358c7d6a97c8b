#pragma once
// This table says how much of everything Plumb takes: every limit of an input that time or memory asks for, in one
// table. What lies within them is answered on one core in a minute or two and in 4 GiB of memory; what lies beyond is
// refused before anything is allocated for it, by a sentence that names the limit, the value and what to give instead.
// They are far beyond what is trained today: what reaches one is most likely a mistake.

#include <cstddef>
#include <cstdint>

namespace plumb { inline namespace schedules {

// Files and texts.
inline constexpr std::size_t kMostFileBytes = std::size_t{1} << 30;  ///< of any file that is read
inline constexpr std::int64_t kMostJsonValues = 50'000'000;          ///< keys, values, brackets of one JSON document
inline constexpr int kDeepestJson = 64;                              ///< lists and objects in each other
inline constexpr std::size_t kLongestExpression = 1000;              ///< letters of a regular expression

// Schedules.
inline constexpr int kMostForwards = 1 << 24;          ///< ranks times micro-batches, chunks and slices
inline constexpr int kMostSearchedForwards = 1 << 20;  ///< of a layout, many of which are looked at
inline constexpr int kLargestStage = 1'000'000;        ///< number of a stage, model part, lane or rank in a file

// Questions.
inline constexpr std::int64_t kMostSequences = std::int64_t{1} << 24;         ///< of one optimizer step
inline constexpr std::int64_t kMostTokens = std::int64_t{1} << 28;            ///< of one sequence
inline constexpr std::int64_t kMostDevices = std::int64_t{1} << 18;           ///< of a cluster
inline constexpr std::size_t kMostLayouts = std::size_t{1} << 19;             ///< that one search leaves open
inline constexpr std::int64_t kMostWhatIfRows = 10'000;                       ///< of one `whatif`
inline constexpr int kMostNoiseRuns = 1'000'000;                              ///< of --noise
inline constexpr std::int64_t kMostNoisyActions = std::int64_t{1} << 30;      ///< in all runs of --noise together
inline constexpr std::int64_t kMostSimulatedActions = std::int64_t{1} << 26;  ///< of unlike replicas on shared links

// Graphs.
inline constexpr std::size_t kMostGraphNodes = std::size_t{1} << 14;  ///< of a layer graph, blocks expanded
inline constexpr std::int64_t kMostPartitionSteps = std::int64_t{1}
                                                    << 36;  ///< of a profile: nodes and devices, each squared

// Runs on this machine.
inline constexpr int kMostThreads = 1024;                            ///< ranks times replicas, each a thread
inline constexpr std::int64_t kMostSamples = std::int64_t{1} << 16;  ///< of a micro-batch of a network

}}  // namespace plumb::schedules
