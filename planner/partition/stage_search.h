#pragma once
// The exact search for the stages whose slowest one is fastest, by dynamic programming over downsets.
//
// A limit on the time of every stage is halved between what cannot be and what was found. Under a limit, what the
// stages behind a downset have taken is kept for each downset: the fewest devices, and the fewest replicas of those.
// It grows from the last stage to the first. A stage space says what a stage of given nodes may be and what it costs.

#include <optional>
#include <vector>

#include "planner/partition/downsets.h"
#include "planner/partition/stage.h"

namespace plumb { inline namespace planner {

/// Devices and replicas that the stages from some point to the end have taken.
struct Taken {
  int devices = 0;   ///< with those that packing leaves idle
  int replicas = 0;  ///< of all of these stages

  friend bool operator==(const Taken&, const Taken&) = default;
};

struct StageWay {
  Taken after;  ///< taken by the stage and those behind it
  int replicas = 1;
  int tensor = 1;
  double seconds = 0;
};

/// Stages whose nodes lie between two downsets, given by their places in Downsets::sets. All times are in seconds.
class StageSpace {
 public:
  virtual ~StageSpace() = default;

  /// Returns device-seconds that the nodes of the downset take in any stages, or less.
  virtual double least_work(int downset) const = 0;

  /// Returns true if whatever can stand in front of stages that took `b` can also stand in front of those that took `a`.
  virtual bool covers(const Taken& a, const Taken& b) const = 0;

  /// Returns less than what any way of the stage takes with all behind it, such that what covers this covers every way;
  /// nothing if there is no such bound.
  virtual std::optional<Taken> least_taken(int part, int whole, const Taken& behind, double limit) const = 0;

  /// The ends of the pipeline that were found for the same nodes. Ways that these cover need not be offered.
  class Known {
   public:
    virtual ~Known() = default;
    virtual bool covers(const Taken& after) const = 0;
  };

  /// Appends the ways to run the nodes of `whole` without those of `part` within `limit` seconds, in front of stages
  /// that took `behind`. Ways that another one covers may be left out.
  virtual void add_ways(int part, int whole, const Taken& behind, double limit, const Known& known,
                        std::vector<StageWay>& ways) const = 0;
};

struct FoundStage {
  int part = 0;   ///< downset in front of the stage
  int whole = 0;  ///< downset with the stage
  Taken behind;   ///< taken by the stages behind it
  StageWay way;
};

/// Returns the stages from the first to the last, of which the slowest is fastest to 1e-12 of its time; nothing if no
/// stages that fit so many devices take less than `below`.
std::optional<std::vector<FoundStage>> fastest_stages(const Downsets& downsets, const StageSpace& space, int devices,
                                                      double below);

/// Returns the stages with their nodes, and their slowest time.
StagePartition partition_of(const std::vector<FoundStage>& stages, const Downsets& downsets);

}}  // namespace plumb::planner
