#pragma once
// Answers that are worked out once, and asked for by many threads.
//
//   Memo<int, Price> prices;
//   const Price& price = prices.of(size, [&] { return price_of(size); });

#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

namespace plumb { inline namespace planner {

/// An answer for each key. It must depend on the key alone: two threads that ask for a new one may both work it out, and
/// the first one is kept. Answers stay where they are, also when the memo is moved, which no thread may see.
template <typename Key, typename Answer>
class Memo {
 public:
  Memo() = default;
  Memo(Memo&& other) noexcept : known_(std::move(other.known_)) {}
  Memo& operator=(Memo&& other) noexcept {
    known_ = std::move(other.known_);
    return *this;
  }

  /// Returns the answer for the key, which is work_out() where none is kept.
  template <typename WorkOut>
  const Answer& of(const Key& key, const WorkOut& work_out) const {
    {
      const std::shared_lock reading(mutex_);
      if (const auto known = known_.find(key); known != known_.end()) return known->second;
    }
    Answer answer = work_out();
    const std::unique_lock writing(mutex_);
    return known_.try_emplace(key, std::move(answer)).first->second;
  }

 private:
  mutable std::shared_mutex mutex_;
  mutable std::map<Key, Answer> known_;
};

}}  // namespace plumb::planner
