#include "tests/ptx/interpreted_kernels.h"

#include <span>
#include <string>
#include <typeinfo>
#include <utility>

#include "executor/kernels/simt_kernels.h"
#include "executor/machines/cuda/launch_size.h"
#include "kernels/simt/thread.h"
#include "kernels/simt/warp.h"
#include "tests/executor/machines/host_product_launcher.h"
#include "tests/ptx/kernel_names.h"

namespace plumb::test {
namespace {

/// Returns the mangled name of the instance of kernels::cuda::TEMPLATE, run_body or run_warps, for a body.
template <class Body>
std::string_view kernel_of(const ptx::Interpreter& interpreter, const std::string& of_template) {
  const std::string body = demangled(typeid(Body).name());
  const std::string begin =
      "void plumb::kernels::cuda::" + of_template + "<" + body + (body.ends_with('>') ? " >(" : ">(");
  for (const ptx::Entry& entry : interpreter.module().entries())
    if (demangled(std::string(entry.name)).starts_with(begin)) return entry.name;
  throw ptx::PtxError("the module has no " + begin + "...)");
}

template <class S>
class InterpretedLauncher : public HostProductLauncher<S> {
 public:
  InterpretedLauncher(HostEnqueue enqueue, ptx::Interpreter& interpreter, int multiprocessors)
      : HostProductLauncher<S>(std::move(enqueue)), interpreter_(&interpreter), multiprocessors_(multiprocessors) {}

  template <class Body>
  void launch(const Body& body, std::int64_t items, int lanes) {
    if (items < 1) return;
    run(kernel_of<Body>(*interpreter_, "run_body"), body,
        {.blocks = static_cast<std::uint32_t>(cuda::blocks_of_items(items)),
         .threads = static_cast<std::uint32_t>(lanes),
         .shared_bytes = shared_bytes_of(lanes)});
  }
  template <class Body>
  void launch_elements(const Body& body, std::int64_t elements) {
    launch(body, cuda::blocks_of_elements(elements, multiprocessors_), cuda::kElementLanes);
  }
  template <class Body>
  void launch_warps(const Body& body) {
    if (body.items() < 1) return;
    run(kernel_of<Body>(*interpreter_, "run_warps"), body,
        {.blocks = static_cast<std::uint32_t>(cuda::blocks_of_items(body.items())),
         .threads = Body::kWarps * simt::kWarpLanes,
         .shared_bytes = Body::kSharedBytes});
  }
  float* scratch() {
    float* const scratch = HostProductLauncher<S>::scratch();
    if (interpreter_->memory().find(reinterpret_cast<std::uint64_t>(scratch), 1) == nullptr)
      interpreter_->memory().add(std::as_writable_bytes(std::span(scratch, kScratchFloats)));
    return scratch;
  }

 private:
  template <class Body>
  void run(std::string_view kernel, const Body& body, const ptx::LaunchSize& size) {
    this->enqueue(
        [=, interpreter = interpreter_] { interpreter->launch(kernel, size, std::as_bytes(std::span(&body, 1))); });
  }

  ptx::Interpreter* interpreter_;
  int multiprocessors_;
};

template <class S>
std::unique_ptr<DeviceKernels> interpreted_kernels_for(HostEnqueue enqueue, ptx::Interpreter& interpreter,
                                                       int multiprocessors) {
  using Launcher = InterpretedLauncher<S>;
  return std::make_unique<SimtKernels<S, Launcher>>(Launcher(std::move(enqueue), interpreter, multiprocessors));
}

}  // namespace

std::unique_ptr<DeviceKernels> make_interpreted_kernels(std::optional<HalfFormat> half, HostEnqueue enqueue,
                                                        ptx::Interpreter& interpreter, int multiprocessors) {
  if (!half) return interpreted_kernels_for<float>(std::move(enqueue), interpreter, multiprocessors);
  if (*half == HalfFormat::kBf16)
    return interpreted_kernels_for<Bf16>(std::move(enqueue), interpreter, multiprocessors);
  return interpreted_kernels_for<Fp16>(std::move(enqueue), interpreter, multiprocessors);
}

}  // namespace plumb::test
