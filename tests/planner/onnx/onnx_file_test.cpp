#include "planner/onnx/onnx_file.h"

#include <doctest/doctest.h>

#include "schedules/limits.h"
#include "tests/planner/onnx/onnx_files.h"
#include "tests/planner/refusal.h"

namespace plumb::test { namespace {

TEST_CASE("nodes stand behind those that they read, in whatever order the file has them") {
  OnnxWriter onnx;
  onnx.input("x", {4});
  onnx.node("Tanh", "second", {"first"});
  onnx.node("Relu", "first", {"x"});
  onnx.output("second");
  const OnnxFile file = parse_onnx(onnx.bytes(), "test.onnx");
  REQUIRE(file.nodes.size() == 2);
  CHECK(file.nodes.front().name == "first");
  CHECK(file.inputs.front().shape.front().name == "batch");
  CHECK(file.inputs.front().shape.back().size == 4);
}

TEST_CASE("every file that is cut off is refused in a sentence") {
  const std::string whole = residual_network();
  int refused = 0;
  for (std::size_t size = 0; size < whole.size(); size += 37) {
    const std::string text = refusal([&] { parse_onnx(whole.substr(0, size), "cut.onnx"); });
    // A cut between two fields leaves a file of fewer nodes.
    if (text.empty()) continue;
    ++refused;
    CHECK(text.find("cut.onnx: ") == 0);
  }
  CHECK(refused > 20);
  check_refused<SpecError>([] { parse_onnx("", "empty.onnx"); }, "empty.onnx", "its end is missing");
  check_refused<SpecError>([] { parse_onnx("no model at all", "text.onnx"); }, "text.onnx", "no ONNX model");
}

TEST_CASE("a cycle, an input that nothing makes and a name that two nodes have are refused") {
  OnnxWriter cycle;
  cycle.input("x", {4});
  cycle.node("Add", "a", {"x", "b"});
  cycle.node("Relu", "b", {"a"});
  cycle.output("b");
  check_refused<SpecError>([&] { parse_onnx(cycle.bytes(), "test.onnx"); }, "test.onnx", "cycle through a");
  OnnxWriter open;
  open.node("Relu", "a", {"nowhere"});
  open.output("a");
  check_refused<SpecError>([&] { parse_onnx(open.bytes(), "test.onnx"); }, "node a", "nowhere");
  OnnxWriter twice;
  twice.input("x", {4});
  twice.node("Relu", "a", {"x"});
  twice.node("Tanh", "a", {"x"});
  twice.output("a");
  check_refused<SpecError>([&] { parse_onnx(twice.bytes(), "test.onnx"); }, "tensor a", "rename one");
  OnnxWriter lost;
  lost.node("Relu", "a", {lost.input("x", {4})});
  lost.output("other");
  check_refused<SpecError>([&] { parse_onnx(lost.bytes(), "test.onnx"); }, "output other", "export");
}

TEST_CASE("control flow and too many nodes are refused") {
  OnnxWriter choice;
  choice.node("If", "a", {choice.input("x", {4})});
  plumb_onnx::AttributeProto& branch = *choice.graph.mutable_node(0)->add_attribute();
  branch.set_name("then_branch");
  branch.mutable_g()->set_name("then");
  choice.output("a");
  check_refused<SpecError>([&] { parse_onnx(choice.bytes(), "test.onnx"); }, "node a (If)", "fixed control flow");
  OnnxWriter many;
  std::string last = many.input("x", {4});
  for (std::size_t i = 0; i <= kMostGraphNodes; ++i) last = many.node("Relu", std::to_string(i), {last});
  many.output(last);
  check_refused<SpecError>([&] { parse_onnx(many.bytes(), "test.onnx"); }, "test.onnx", "16384");
}

}}  // namespace plumb::test
