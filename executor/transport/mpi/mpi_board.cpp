#include "executor/transport/mpi/mpi_board.h"

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "executor/transport/mpi/mpi_world.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

constexpr std::chrono::milliseconds kForOneMoment{200};

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
      return sentence_of(error);
    }
  }
  bool tell(const std::string& fault) override {
    if (has_told_) return true;
    if (!told().empty()) return false;
    world_.call_out(fault);
    // If two ranks fail in one moment, the lower rank speaks.
    const auto end = std::chrono::steady_clock::now() + kForOneMoment;
    while (std::chrono::steady_clock::now() < end) {
      const std::optional<MpiWorld::Heard> other = world_.hear();
      if (other && other->rank < rank()) fault_ = other->text;
      if (!fault_.empty()) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return has_told_ = true;
  }
  std::string told() override {
    if (has_told_ || !fault_.empty()) return fault_;
    if (const std::optional<MpiWorld::Heard> other = world_.hear()) fault_ = other->text;
    return fault_;
  }

 private:
  MpiWorld& world_;
  bool has_told_ = false;
  std::string fault_;
};

}  // namespace

std::unique_ptr<RankBoard> mpi_board(Seconds patience) {
  return std::make_unique<MpiBoard>(patience);
}

}}  // namespace plumb::executor
