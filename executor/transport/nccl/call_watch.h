#pragma once
// Keeps track of the calls that a rank has enqueued, which are over and which are under way, so that a rank that waits
// in vain can name the call.

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace plumb { inline namespace executor {

class CallWatch {
 public:
  /// Forgets all calls. The calls of a replay come in the order in which they are enqueued, numbered from 0 on.
  void clear();
  void begin(int stream, std::string text);
  /// Says that the call that has begun waits for an earlier one.
  void wait_for(std::size_t earlier) { calls_.back().waits.push_back(earlier); }
  /// Says that the call that has begun waits for other ranks; `text` describes the exchange.
  void exchanges(std::string text);
  std::size_t size() const { return calls_.size(); }

  /// Notes which calls are over. Returns true if there are more than before.
  bool advance(const std::function<bool(std::size_t call)>& has_ended);
  bool is_over() const { return over_ == calls_.size(); }

  /// Returns the first call under way that waits for other ranks, where all calls before it on its stream and all that
  /// it waits for are over. If there is none, it returns the first such call of any kind.
  std::optional<std::size_t> stuck() const;

  /// Returns the text of all calls under way, "<call> or <call>"; if advance() has never returned, "<the last> or
  /// earlier".
  std::string under_way() const;

  const std::string& text_of(std::size_t call) const { return calls_[call].text; }
  /// Returns "<calls>: <reason>; the last that it has completed is <call>".
  std::string text_of_fault(const std::string& calls, const std::string& reason) const;

 private:
  struct Call {
    std::string text;
    std::vector<std::size_t> waits;
    bool exchanges = false, is_over = false;
  };
  struct Stream {
    std::vector<std::size_t> calls;
    std::size_t over = 0;
  };

  bool can_run(const Call& call) const;

  std::vector<Call> calls_;
  std::map<int, Stream> streams_;
  std::size_t over_ = 0;
  bool has_advanced_ = false;
  std::optional<std::size_t> last_;
};

}}  // namespace plumb::executor
