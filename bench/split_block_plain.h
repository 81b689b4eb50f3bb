// The split-block filter as its specification (Apache Parquet's BloomFilter.md) reads, one bit after the other, in a
// file that is compiled without SIMD: what the layout costs without kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bloomline::bench {

class SplitBlockPlain {
 public:
  explicit SplitBlockPlain(size_t bytes) : words_(bytes / 4) {}
  void InsertHash(uint64_t hash);
  bool MayContainHash(uint64_t hash) const;
  // Calls for many keys, hashed as its users do (XXH64), so that no call per key is part of what is measured.
  void Insert(const uint64_t* keys, size_t count);
  size_t CountMayContain(const uint64_t* keys, size_t count) const;
  size_t memory_bytes() const { return words_.size() * 4; }

 private:
  static constexpr size_t kWords = 8;  // of a block
  size_t BlockOf(uint64_t hash) const {
    return static_cast<size_t>((hash >> 32) * (words_.size() / kWords) >> 32) * kWords;
  }
  std::vector<uint32_t> words_;
};

}  // namespace bloomline::bench
