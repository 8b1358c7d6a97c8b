#include "executor/mpi/mpi_board.h"

#include <exception>
#include <string>
#include <vector>

#include "executor/mpi/mpi_world.h"

namespace plumb {
namespace {

class MpiBoard : public RankBoard {
 public:
  explicit MpiBoard(Seconds patience) : world_(MpiWorld::joined()) { world_.wait_at_most(patience); }

  int rank() const override { return world_.rank(); }
  int ranks() const override { return world_.size(); }
  std::string exchange(const std::string& own, std::vector<std::string>& all) override {
    try {
      all = world_.exchange(own);
      return {};
    } catch (const std::exception& error) {
      return error.what();
    }
  }
  bool tell(const std::string&) override { return true; }
  std::string told() override { return {}; }

 private:
  MpiWorld& world_;
};

}  // namespace

std::unique_ptr<RankBoard> mpi_board(Seconds patience) {
  return std::make_unique<MpiBoard>(patience);
}

}  // namespace plumb
