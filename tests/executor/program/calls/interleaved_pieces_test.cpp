#include "executor/program/calls/interleaved_pieces.h"

#include <doctest/doctest.h>

#include <string>

namespace plumb::test {
namespace {

RecordedPiece kernels() {
  RecordedPiece piece;
  piece.work.emplace_back([](DeviceKernels&) {});
  return piece;
}

RecordedPiece exchange(std::int32_t communicator) {
  RecordedPiece piece;
  piece.exchange = DeviceExchange{.communicator = communicator};
  return piece;
}

/// Returns a line a piece: "kernels behind 3" or "exchange 7 aside behind 0".
std::string text_of(const std::vector<RecordedPiece>& pieces) {
  std::string text;
  for (const RecordedPiece& piece : pieces) {
    text += piece.exchange ? "exchange " + std::to_string(piece.exchange->communicator) : "kernels";
    if (piece.stream) text += *piece.stream == DeviceStream::kExchange ? " aside" : " elsewhere";
    if (!piece.behind.empty()) text += " behind";
    for (const std::int32_t former : piece.behind) text += " " + std::to_string(former);
    text += "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("the exchanges of one action of a pair stand beside the kernels of the other") {
  CHECK(text_of(interleaved_pieces({kernels(), exchange(1), kernels(), exchange(2), kernels()},
                                   {kernels(), exchange(3), kernels()})) ==
        "kernels\n"
        "exchange 1 aside behind 0\n"
        "kernels\n"
        "exchange 3 aside behind 2\n"
        "kernels behind 1\n"
        "exchange 2 aside behind 4\n"
        "kernels behind 3\n"
        "kernels behind 5\n");
}

TEST_CASE("a pair whose last piece is an exchange ends behind it") {
  CHECK(text_of(interleaved_pieces({exchange(1)}, {kernels()})) ==
        "exchange 1 aside\n"
        "kernels\n"
        "kernels behind 0\n");
}

TEST_CASE("pieces that already stand on another stream stay there, behind the same pieces as before") {
  RecordedPiece gather = exchange(5);
  gather.stream = DeviceStream::kReduce;
  gather.behind = {0};
  RecordedPiece reader = kernels();
  reader.behind = {1};
  CHECK(text_of(interleaved_pieces({kernels(), exchange(1)}, {kernels(), gather, reader})) ==
        "kernels\n"
        "exchange 1 aside behind 0\n"
        "kernels\n"
        "exchange 5 elsewhere behind 2\n"
        "kernels behind 3\n"
        "kernels behind 1\n");
}

}  // namespace plumb::test
