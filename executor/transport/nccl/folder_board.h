#pragma once
// A board for the processes of one run, on one machine or several, that meet in a folder that all of them see. It needs
// no MPI. Files of earlier runs in the folder are not mistaken for this run's, and the next run that meets removes
// them.

#include <filesystem>
#include <string>
#include <vector>

#include "executor/transport/nccl/rank_board.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor {

class FolderBoard : public RankBoard {
 public:
  /// Returns when all ranks are there; they make the folder if need be. Throws SpecError if `rank` is not one of
  /// `ranks`, and RunError if the folder cannot be written to or the others do not come within `patience`.
  FolderBoard(std::filesystem::path folder, int rank, int ranks, Seconds patience);

  /// Rank 0 waits a little for the others, and removes the files of all ranks, unless a rank has failed.
  ~FolderBoard() override;
  FolderBoard(const FolderBoard&) = delete;
  FolderBoard& operator=(const FolderBoard&) = delete;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::string exchange(const std::string& own, std::vector<std::string>& all) override;
  bool tell(const std::string& fault) override;
  std::string told() override;

 private:
  void meet(const std::string& own);
  void remove_others() const;
  void write(const std::string& name, const std::string& text) const;
  std::string file_of(int round, int rank) const;

  const std::filesystem::path folder_;
  const int rank_, ranks_;
  const Seconds patience_;
  std::string team_;  // a name that no other run has
  int rounds_ = 0;
  bool has_told_ = false;
  double asked_s_ = 0;  // time of the last look for the fault's file
  std::string fault_;
};

}}  // namespace plumb::executor
