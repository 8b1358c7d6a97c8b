#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "tests/traces/support.h"
#include "traces/draw/draw.h"

namespace plumb::test {
namespace {

/// Returns the golden file of that name; with UPDATE_GOLDEN=1 it is written first.
std::string golden(const std::string& name, const std::string& text) {
  const char* source = std::getenv("PLUMB_SOURCE");
  const std::string path = std::string(source != nullptr ? source : ".") + "/tests/traces/golden/" + name + ".txt";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

Timeline timeline_of(std::vector<Span> spans) {
  Timeline timeline{.title = "by hand", .microbatches = 2, .stages = {{}}};
  timeline.ranks.push_back({.spans = std::move(spans)});
  return timeline;
}

Span drawn_span(int start, int end, Op op, int microbatch, bool overlaps_next = false) {
  return {.start = SimTime{start},
          .end = SimTime{end},
          .action = {.op = op, .overlaps_next = overlaps_next, .microbatch = microbatch}};
}

std::string row(const Timeline& timeline, int width = 120) {
  const std::string text = draw(timeline, {.width = width});
  const std::size_t begin = text.find("│") + std::string("│").size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("GPipe, 1F1B and interleaved 1F1B with p=4 m=8 look like the figures of their papers") {
    const std::string gpipe = draw(predicted_timeline("gpipe", 4, 8));
    CHECK(gpipe == golden("gpipe_p4_m8", gpipe));
    const std::string one_f_one_b = draw(predicted_timeline("1f1b", 4, 8));
    CHECK(one_f_one_b == golden("1f1b_p4_m8", one_f_one_b));
    const std::string interleaved = draw(predicted_timeline("interleaved", 4, 8, 2), {.width = 180});
    CHECK(interleaved == golden("interleaved_p4_m8_v2", interleaved));
    const std::string narrow = draw(predicted_timeline("interleaved", 4, 8, 2), {.width = 80});
    CHECK(narrow == golden("interleaved_p4_m8_v2_narrow", narrow));
    const std::string colored = draw(predicted_timeline("interleaved", 4, 8, 2), {.width = 180, .color = true});
    CHECK(colored == golden("interleaved_p4_m8_v2_color", colored));
  }
}

TEST_SUITE("unit") {
  TEST_CASE("cells are as wide as their actions are long, and idle time is blank") {
    CHECK(row(timeline_of({drawn_span(0, 1, Op::kForward, 0), drawn_span(2, 4, Op::kBackward, 0)})) == "0░░   0▓▓▓▓▓");
  }

  TEST_CASE("the two actions of an overlapped pair share their time") {
    CHECK(row(timeline_of({drawn_span(0, 2, Op::kForward, 1, true), drawn_span(0, 2, Op::kBackward, 0)})) == "1░░0▓▓");
  }

  TEST_CASE("each operation has a fill of its own") {
    CHECK(row(timeline_of({drawn_span(0, 1, Op::kForward, 0), drawn_span(1, 2, Op::kRecompute, 0),
                           drawn_span(2, 3, Op::kInputGrad, 0), drawn_span(3, 4, Op::kWeightGrad, 0),
                           drawn_span(4, 5, Op::kOptimizerStep, kNoMicrobatch)})) == "0░░0~~0▒▒0==###");
  }

  TEST_CASE("no row and no legend is wider than asked, however long the schedule") {
    const std::string text = draw(predicted_timeline("zb-h1", 4, 300), {.width = 60});
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      int columns = 0;
      for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;  // UTF-8 characters
      CHECK(columns <= 60);
    }
  }

  TEST_CASE("a timeline without spans is a title, empty rows and a legend") {
    Timeline timeline{.title = "nothing"};
    timeline.ranks.resize(1);
    CHECK(draw(timeline) == "nothing\nrank 0 │\nmakespan 0 s  bubble 0.0 %\n");
  }
}

}  // namespace plumb::test
