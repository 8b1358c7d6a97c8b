#pragma once
// This table says how much of everything Plumb takes: it holds every limit of an input that time or memory asks for. A
// question within the limits is answered on one core in a minute or two and in 4 GiB of memory. A question beyond them
// is refused before anything is allocated for it, by a sentence that names the limit, the value and what to give
// instead. The limits lie far beyond what is trained today, so that a question that reaches one is most likely a
// mistake.

#include <cstddef>
#include <cstdint>

namespace plumb { inline namespace schedules {

// Limits of files and texts.
inline constexpr std::size_t kMostFileBytes = std::size_t{1} << 30;  ///< bytes of any file that is read
inline constexpr std::int64_t kMostJsonValues = 50'000'000;          ///< keys, values and brackets of one JSON document
inline constexpr int kDeepestJson = 64;                              ///< depth of lists and objects inside each other
inline constexpr std::size_t kLongestExpression = 1000;              ///< letters of a regular expression

// Limits of schedules.
inline constexpr int kMostForwards = 1 << 24;  ///< ranks times micro-batches, chunks and slices
/// the same product for a layout of a search, which looks at many
inline constexpr int kMostSearchedForwards = 1 << 20;
inline constexpr int kLargestStage = 1'000'000;  ///< largest number of a stage, model part, lane or rank in a file

// Limits of questions.
inline constexpr std::int64_t kMostSequences = std::int64_t{1} << 24;     ///< sequences of one optimizer step
inline constexpr std::int64_t kMostTokens = std::int64_t{1} << 28;        ///< tokens of one sequence
inline constexpr std::int64_t kMostDevices = std::int64_t{1} << 18;       ///< devices of a cluster
inline constexpr std::size_t kMostLayouts = std::size_t{1} << 19;         ///< layouts that one search leaves open
inline constexpr std::int64_t kMostWhatIfRows = 10'000;                   ///< rows of one `whatif`
inline constexpr int kMostNoiseRuns = 1'000'000;                          ///< runs of --noise
inline constexpr std::int64_t kMostNoisyActions = std::int64_t{1} << 30;  ///< actions in all runs of --noise together
/// actions of unlike replicas on shared links
inline constexpr std::int64_t kMostSimulatedActions = std::int64_t{1} << 26;

// Limits of graphs.
inline constexpr std::size_t kMostGraphNodes = std::size_t{1} << 14;     ///< nodes of a layer graph, blocks expanded
inline constexpr std::size_t kMostProfiledNodes = std::size_t{1} << 18;  ///< nodes of a measured graph
inline constexpr std::size_t kMostDownsets = 20'000;                     ///< ways to cut a measured graph in two
inline constexpr std::size_t kMostClusters = 1'000;  ///< the same where each takes long, and of one order of nodes
inline constexpr int kFewDevices = 64;               ///< devices for which each way takes little time

// Limits of runs on this machine.
inline constexpr int kMostThreads = 1024;  ///< ranks times replicas, each of which is a thread
inline constexpr std::int64_t kMostSamples = std::int64_t{1} << 16;  ///< samples of a micro-batch of a network

}}  // namespace plumb::schedules
