// What is beyond the counters' maximum, under the spill policy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <unordered_map>

namespace bloomline::detail {

// A counter's place in its filter: block · counters per block + the counter's number in the line.
class SpillTable {
 public:
  using Map = std::unordered_map<uint64_t, uint64_t>;

  uint64_t Get(uint64_t counter) const noexcept {
    const auto found = entries_.find(counter);
    return found == entries_.end() ? 0 : found->second;
  }
  // False: out of memory, nothing changed.
  bool Add(uint64_t counter, uint64_t count) noexcept {
    if (count == 0) return true;
    try {
      entries_[counter] += count;
    } catch (const std::bad_alloc&) {
      return false;
    }
    total_ += count;
    return true;
  }
  // Takes one; false where there is none.
  bool TakeOne(uint64_t counter) noexcept {
    const auto found = entries_.find(counter);
    if (found == entries_.end()) return false;
    --total_;
    if (--found->second == 0) entries_.erase(found);
    return true;
  }
  void Clear() noexcept {
    entries_.clear();
    total_ = 0;
  }

  const Map& entries() const noexcept { return entries_; }
  uint64_t total() const noexcept { return total_; }  // the sum of all entries
  // Of nodes (key, value, link) and buckets, with what an allocator adds to a node.
  uint64_t MemoryBytes() const noexcept {
    return entries_.size() * (sizeof(Map::value_type) + 2 * sizeof(void*)) + entries_.bucket_count() * sizeof(void*);
  }

 private:
  Map entries_;
  uint64_t total_ = 0;
};

}  // namespace bloomline::detail
