#include "tools/runs/cuda_run.h"

#include <charconv>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/cuda_library/open_cuda_library.h"
#include "executor/spec/run_shape.h"
#include "executor/transport/mpi/launched.h"
#include "executor/transport/mpi/mpi_board.h"
#include "executor/transport/nccl/folder_board.h"
#include "executor/transport/transport.h"
#include "schedules/error.h"
#include "tools/io/console.h"
#include "tools/io/progress.h"
#include "tools/io/usage.h"
#include "tools/runs/rank_processes.h"

namespace plumb { inline namespace tools {
namespace {

std::string own_folder() {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/exe", none).parent_path().string();
}

}  // namespace

const CudaLibrary& open_cuda(bool meets_others) {
  set_cuda_environment(meets_others);
  const CudaLibrary& library = open_cuda_library(own_folder(), PLUMB_VERSION);
  cuda_devices(library);
  return library;
}

const NcclLibrary& open_nccl() {
  set_cuda_environment(true);
  return open_nccl_library(own_folder(), PLUMB_VERSION);
}

void require_cuda_arguments_on_cuda(const ReplayArguments& arguments) {
  if (arguments.backend == "cuda") return;
  if (arguments.cuda.sms != "even" || arguments.cuda.graph || !arguments.cuda.gpus.empty() ||
      !arguments.cuda.board.empty() || arguments.cuda.rank >= 0)
    throw UsageError(
        "--sms, --cuda-graph, --gpus, --board and --rank are for --backend cuda: leave them away (mpirun starts "
        "processes of the other backends)");
}

const CudaLibrary& require_cuda(const CudaArguments& arguments) {
  if (arguments.rank >= 0 && arguments.board.empty())
    throw UsageError("--rank says which of several processes this is: name the folder where they meet with --board");
  if (is_one_cuda_rank(arguments) && (arguments.sms != "even" || arguments.graph || arguments.gpus == "one"))
    throw UsageError(
        "--sms, --cuda-graph and --gpus one are for ranks on one GPU, in one process: leave them away, or start it "
        "alone");
  return open_cuda(is_one_cuda_rank(arguments));
}

CudaSharing cuda_sharing(const std::string& sms, bool graph) {
  CudaSharing how{.parts = sms != "all", .graph = graph};
  if (sms == "all" || sms == "even") return how;
  const char* at = sms.data();
  const char* const end = at + sms.size();
  while (true) {
    int share = 0;
    const auto [next, error] = std::from_chars(at, end, share);
    if (error != std::errc() || share < 1 || (next != end && *next != ','))
      throw UsageError(fmt::format("--sms {}: give even, all, or a share of the SMs for each rank, as in 3,1", sms));
    how.shares.push_back(share);
    if (next == end) return how;
    at = next + 1;
  }
}

std::string cuda_device_text(const CudaLibrary& library) {
  const CudaDevice first = cuda_devices(library).front();
  return fmt::format("{}, sm_{}{}, {} SMs, {:.1f} GiB, CUDA {}", first.name, first.major, first.minor,
                     first.multiprocessors, static_cast<double>(first.memory_bytes) / (1 << 30), first.driver);
}

bool is_one_cuda_rank(const CudaArguments& arguments) {
  return launched_ranks() > 1 || !arguments.board.empty();
}

namespace {

/// Returns which of several processes this is.
int own_rank(const CudaArguments& arguments) {
  return arguments.rank >= 0 ? arguments.rank : launched_rank();
}

void refuse_checkpoints(bool are_wanted) {
  if (are_wanted)
    throw InputError(
        "checkpoints of ranks on a GPU each are not there yet: leave --checkpoint-dir away, or take --gpus one");
}

/// The answer of the library's run_rank(), which raise() turns into an exception.
struct RankAnswer {
  std::string wrong;
  bool was_told = false, is_spec = false;

  void raise(int rank) const {
    if (wrong.empty()) return;
    if (was_told || (is_spec && rank != 0)) throw RunAborted(wrong);  // the rank that has found it reports it
    if (is_spec) throw SpecError(wrong);
    throw RunError(wrong);
  }
};

std::optional<RunResult> run_rank(const CudaLibrary& library, const NcclLibrary& nccl, const RunSpec& spec,
                                  const CudaArguments& arguments) {
  const int world = world_size(rank_grid_of(spec));
  std::unique_ptr<RankBoard> board;
  int local = launched_local_rank();
  if (arguments.board.empty()) {
    board = mpi_board(spec.watchdog);
  } else {
    if (arguments.rank >= 0) local = arguments.rank;
    board = std::make_unique<FolderBoard>(arguments.board, own_rank(arguments), world, spec.watchdog);
  }
  std::optional<RunResult> result;
  RankAnswer answer;
  const int device = local % static_cast<int>(cuda_devices(library).size());
  answer.wrong = nccl.run_rank(spec, *board, device, result, answer.was_told, answer.is_spec);
  answer.raise(board->rank());
  return result;
}

/// Returns true if each rank takes a GPU of its own. Throws InputError or UsageError if that is asked for and not
/// possible.
bool takes_each(const CudaLibrary& library, int world, const CudaArguments& arguments) {
  const auto gpus = static_cast<int>(cuda_devices(library).size());
  const bool shares = arguments.sms != "even" || arguments.graph;
  if (arguments.gpus == "each" && gpus < world)
    throw InputError(
        fmt::format("--gpus each: there are {} ranks and {} GPUs here; take --gpus one, or start a process "
                    "for each rank on several machines",
                    world, gpus));
  if (arguments.gpus == "each" && shares)
    throw UsageError("--sms and --cuda-graph are for ranks on one GPU: leave them away, or take --gpus one");
  return arguments.gpus == "each" || (arguments.gpus.empty() && !shares && world > 1 && gpus >= world);
}

}  // namespace

bool is_first_process(const CudaArguments& arguments) {
  return own_rank(arguments) == 0;
}

bool run_as_processes(const CudaLibrary& library, const RunSpec& spec, const CudaArguments& arguments,
                      bool has_checkpoints) {
  const int world = world_size(rank_grid_of(spec));
  if (is_one_cuda_rank(arguments) || !takes_each(library, world, arguments)) return false;
  refuse_checkpoints(has_checkpoints);
  run_rank_processes(world);
  return true;
}

std::optional<RunResult> run_on_cuda(const CudaLibrary& library, const RunSpec& spec, const CudaArguments& arguments,
                                     Seconds expected, const DeviceRunOptions& options) {
  const CudaSharing how = cuda_sharing(arguments.sms, arguments.graph);
  const int world = world_size(rank_grid_of(spec));
  std::optional<RunResult> result;
  std::string sharing = fmt::format("{} GPUs with NCCL", world);
  if (is_one_cuda_rank(arguments)) {
    refuse_checkpoints(options.checkpoint_every > 0);
    const auto run_own = [&] { return run_rank(library, open_nccl(), spec, arguments); };
    result = is_first_process(arguments) ? with_progress("running", expected, run_own) : run_own();
    if (!result) return {};
  } else {
    const std::string wrong =
        with_progress("running", expected, [&] { return library.run(spec, how, options, result.emplace(), sharing); });
    if (!wrong.empty()) throw RunError(wrong);
  }
  for (Timeline& timeline : result->timelines) timeline.title += " on " + sharing;
  return result;
}

}}  // namespace plumb::tools
