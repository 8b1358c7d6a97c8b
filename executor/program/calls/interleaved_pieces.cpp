#include "executor/program/calls/interleaved_pieces.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace plumb { inline namespace executor {
namespace {

constexpr std::int32_t kNone = -1;

/// One of the two actions, as far as its pieces have been taken.
struct Part {
  std::vector<RecordedPiece> pieces;
  std::vector<std::int32_t> places;     // [piece taken] its place in the result
  std::int32_t last_on_stream = kNone;  // place of its last piece on the call's own stream
  std::int32_t open_exchange = kNone;   // place of the exchange that its next piece on that stream waits for

  bool has_more() const { return places.size() < pieces.size(); }
};

class Interleaving {
 public:
  Interleaving(std::vector<RecordedPiece> first, std::vector<RecordedPiece> second)
      : parts_{Part{.pieces = std::move(first)}, Part{.pieces = std::move(second)}} {}

  std::vector<RecordedPiece> take() {
    for (std::size_t turn = 0; parts_[0].has_more() || parts_[1].has_more(); ++turn) take_turn(parts_[turn % 2]);
    RecordedPiece end;
    for (const Part& part : parts_)
      if (part.open_exchange != kNone) end.behind.push_back(part.open_exchange);
    if (!end.behind.empty()) result_.push_back(std::move(end));
    return std::move(result_);
  }

 private:
  void take_turn(Part& part) {
    while (part.has_more()) {
      RecordedPiece& piece = part.pieces[part.places.size()];
      for (std::int32_t& former : piece.behind) former = part.places[static_cast<std::size_t>(former)];
      const bool ends_turn = piece.exchange && !piece.stream;
      const bool is_aside = piece.stream.has_value();
      const auto place = static_cast<std::int32_t>(result_.size());
      if (ends_turn) {
        piece.stream = DeviceStream::kExchange;
        if (part.last_on_stream != kNone) piece.behind.push_back(part.last_on_stream);
        part.open_exchange = place;
      } else if (!is_aside) {
        if (part.open_exchange != kNone) piece.behind.push_back(std::exchange(part.open_exchange, kNone));
        part.last_on_stream = place;
      }
      result_.push_back(std::move(piece));
      part.places.push_back(place);
      if (ends_turn) return;
    }
  }

  std::array<Part, 2> parts_;
  std::vector<RecordedPiece> result_;
};

}  // namespace

std::vector<RecordedPiece> interleaved_pieces(std::vector<RecordedPiece> first, std::vector<RecordedPiece> second) {
  return Interleaving(std::move(first), std::move(second)).take();
}

}}  // namespace plumb::executor
