// What the tests of kernels and filters share: every layout, guarded memory, and the bit layouts written a second time.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/layout.h"

namespace bloomline::test {

struct LayoutAndK {
  Layout layout;
  int k;
  std::string Name() const {
    static constexpr const char* kNames[] = {"auto", "z1", "z2", "z4", "z8", "line512", "split256"};
    return std::string(kNames[static_cast<int>(layout)]) + "k" + std::to_string(k);
  }
};

inline constexpr std::array<Layout, 6> kLayouts = {Layout::kSector512z1, Layout::kSector512z2, Layout::kSector512z4,
                                                   Layout::kSector512z8, Layout::kLine512,     Layout::kSplit256};

// The k that fit a layout, by the rule of the design: the number of zones divides k, k ≤ 16.
inline std::vector<int> HashCounts(Layout layout) {
  if (layout == Layout::kSplit256) return {8};
  const int zones = layout == Layout::kSector512z2   ? 2
                    : layout == Layout::kSector512z4 ? 4
                    : layout == Layout::kSector512z8 ? 8
                                                     : 1;
  std::vector<int> ks;
  for (int k = zones; k <= 16; k += zones) ks.push_back(k);
  return ks;
}

inline std::vector<LayoutAndK> AllLayouts() {
  std::vector<LayoutAndK> all;
  for (const Layout layout : kLayouts) {
    for (const int k : HashCounts(layout)) all.push_back({layout, k});
  }
  return all;
}

__extension__ typedef unsigned __int128 Wide;

// SplitMix64 (Steele, Lea, Flood 2014): independent of the library's own mixer.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t Below(uint64_t bound) { return static_cast<uint64_t>((Wide{Next()} * bound) >> 64); }
  std::vector<uint64_t> Take(size_t count) {
    std::vector<uint64_t> values(count);
    for (uint64_t& value : values) value = Next();
    return values;
  }

 private:
  uint64_t state_;
};

// FNV-1a of the words' bytes as they are in a file (little-endian).
inline uint64_t Fnv1a(std::span<const uint64_t> words) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint64_t word : words) {
    for (int byte = 0; byte < 8; ++byte) hash = (hash ^ ((word >> (8 * byte)) & 0xff)) * 0x100000001b3;
  }
  return hash;
}

inline bool BitOf(std::span<const uint64_t> bitmap, size_t i) { return ((bitmap[i / 64] >> (i % 64)) & 1) != 0; }
inline size_t BitmapWords(size_t keys) { return (keys + 63) / 64; }

// ---- The layouts, read off the design's text and not off kernels/layout.h: wide arithmetic, one bit at a time.
namespace slow {

inline uint64_t BlockIndex(Layout layout, uint64_t hash, uint64_t blocks) {
  const Wide wide = blocks;
  if (layout == Layout::kSplit256) return static_cast<uint64_t>((wide * (hash >> 32)) >> 32);
  return static_cast<uint64_t>((wide * hash) >> 64);
}

// g's bits from the top down. A field that the word has too few bits left for starts in the next word.
class Fields {
 public:
  explicit Fields(uint64_t hash) : word_(hash * 0x9e3779b97f4a7c15) {}
  unsigned Take(int width) {
    if (width > 64 - used_) {
      word_ *= 0xd1342543de82ef95;
      used_ = 0;
    }
    unsigned value = 0;
    for (int i = 0; i < width; ++i) value = 2 * value + static_cast<unsigned>((word_ >> (63 - used_++)) & 1);
    return value;
  }

 private:
  uint64_t word_;
  int used_ = 0;
};

// The numbers of the key's bits in its block: 64 · word + bit. Repeats are possible.
inline std::vector<unsigned> BitsOf(Layout layout, int k, uint64_t hash) {
  std::vector<unsigned> bits;
  if (layout == Layout::kSplit256) {
    static constexpr uint64_t kSalts[8] = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                                           0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};
    for (unsigned lane = 0; lane < 8; ++lane) {
      const uint64_t product = (hash % 0x100000000) * kSalts[lane] % 0x100000000;
      bits.push_back(32 * lane + static_cast<unsigned>(product / 0x8000000));
    }
    return bits;
  }
  Fields fields(hash);
  if (layout == Layout::kLine512) {
    for (int i = 0; i < k; ++i) {
      const unsigned field = fields.Take(9);
      bits.push_back(64 * (field / 64) + field % 64);
    }
    return bits;
  }
  int zones = 1, select_width = 3;
  if (layout == Layout::kSector512z2) zones = 2, select_width = 2;
  if (layout == Layout::kSector512z4) zones = 4, select_width = 1;
  if (layout == Layout::kSector512z8) zones = 8, select_width = 0;
  for (int zone = 0; zone < zones; ++zone) {
    const unsigned word = static_cast<unsigned>(zone * (8 / zones)) + fields.Take(select_width);
    for (int i = 0; i < k / zones; ++i) bits.push_back(64 * word + fields.Take(6));
  }
  return bits;
}

// A filter of the slow kind.
class Filter {
 public:
  Filter(Layout layout, int k, uint64_t blocks) : layout_(layout), k_(k), blocks_(blocks) {
    words_.resize(blocks * WordsPerBlock());
  }
  size_t WordsPerBlock() const { return layout_ == Layout::kSplit256 ? 4 : 8; }
  bool Insert(uint64_t hash) {  // whether a bit changed
    bool changed = false;
    for (const unsigned bit : BitsOf(layout_, k_, hash)) {
      uint64_t& word = WordOf(hash, bit);
      changed |= ((word >> (bit % 64)) & 1) == 0;
      word |= uint64_t{1} << (bit % 64);
    }
    return changed;
  }
  bool MayContain(uint64_t hash) {
    for (const unsigned bit : BitsOf(layout_, k_, hash)) {
      if (((WordOf(hash, bit) >> (bit % 64)) & 1) == 0) return false;
    }
    return true;
  }
  const std::vector<uint64_t>& words() const { return words_; }

  // The exact rate of false positives of this content, block by block.
  double FillFpr() const {
    double sum = 0;
    const size_t per_block = WordsPerBlock();
    for (size_t at = 0; at < words_.size(); at += per_block) {
      double pass = 1;
      if (layout_ == Layout::kSplit256) {
        for (size_t lane = 0; lane < 8; ++lane) {
          pass *= std::popcount(static_cast<uint32_t>(words_[at + lane / 2] >> (32 * (lane % 2)))) / 32.0;
        }
      } else if (layout_ == Layout::kLine512) {
        int set = 0;
        for (size_t i = 0; i < 8; ++i) set += std::popcount(words_[at + i]);
        pass = std::pow(set / 512.0, k_);
      } else {
        const size_t zones = size_t{1} << (static_cast<int>(layout_) - static_cast<int>(Layout::kSector512z1));
        const int per_zone = k_ / static_cast<int>(zones);
        for (size_t zone = 0; zone < zones; ++zone) {
          double mean = 0;
          for (size_t i = 0; i < 8 / zones; ++i) {
            mean += std::pow(std::popcount(words_[at + zone * (8 / zones) + i]) / 64.0, per_zone);
          }
          pass *= mean / static_cast<double>(8 / zones);
        }
      }
      sum += pass;
    }
    return sum / static_cast<double>(blocks_);
  }

 private:
  uint64_t& WordOf(uint64_t hash, unsigned bit) {
    return words_[BlockIndex(layout_, hash, blocks_) * WordsPerBlock() + bit / 64];
  }
  Layout layout_;
  int k_;
  uint64_t blocks_;
  std::vector<uint64_t> words_;
};

}  // namespace slow

// Memory between two pages that fault when they are touched. Tail(bytes) ends right before the upper one,
// Head() starts right after the lower one. What lies in front of a Tail is filled with a canary.
class Guarded {
 public:
  explicit Guarded(size_t capacity) : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    capacity_ = (capacity + page_ - 1) / page_ * page_;
    map_ = static_cast<std::byte*>(
        mmap(nullptr, capacity_ + 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (map_ == MAP_FAILED || mprotect(map_, page_, PROT_NONE) != 0 ||
        mprotect(map_ + page_ + capacity_, page_, PROT_NONE) != 0) {
      std::abort();  // no memory for a test
    }
    std::memset(Head(), kCanary, capacity_);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { munmap(map_, capacity_ + 2 * page_); }

  std::byte* Head() const { return map_ + page_; }
  size_t capacity() const { return capacity_; }
  std::byte* Tail(size_t bytes) const { return map_ + page_ + capacity_ - bytes; }
  template <class T>
  std::span<T> TailOf(size_t count) const {
    return {reinterpret_cast<T*>(Tail(count * sizeof(T))), count};
  }
  // Whether the last 512 bytes in front of Tail(bytes) are as they were made.
  bool CanaryIntact(size_t bytes) const {
    const size_t in_front = capacity_ - bytes < 512 ? capacity_ - bytes : 512;
    for (size_t i = 1; i <= in_front; ++i) {
      if (*(Tail(bytes) - i) != std::byte{kCanary}) return false;
    }
    return true;
  }
  void FillCanary() const { std::memset(Head(), kCanary, capacity_); }

 private:
  static constexpr unsigned char kCanary = 0xa5;
  size_t page_;
  size_t capacity_ = 0;
  std::byte* map_ = nullptr;
};

// A small filter of exactly `blocks` blocks.
inline FilterConfig SmallConfig(Layout layout, int k, uint64_t blocks, const std::string& target = "",
                                uint64_t seed = 42) {
  return FilterConfig::ForBits(blocks * (layout == Layout::kSplit256 ? 256 : 512), k, layout)
      .WithTarget(target)
      .WithSeed(seed);
}

// The standard deviation of a measured rate around the model's: q probes that hit with probability p, and the content's
// own relative deviation.
inline double RateDeviation(double p, double q, double content_relative) {
  return std::sqrt(p * (1 - p) / q + p * p * content_relative * content_relative);
}

// Inserts key_of(0 … n − 1) in batches, hashed as integers or, with hashed, as they are.
template <class KeyOf>
void InsertMany(bloomline::Filter& filter, uint64_t n, KeyOf key_of, bool hashed = false) {
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < n;) {
    keys.resize(n - i < 4096 ? n - i : 4096);
    for (uint64_t& key : keys) key = key_of(i++);
    hashed ? filter.InsertHashBatch(keys) : filter.InsertBatch(keys);
  }
}

// How many of key_of(first … first + count − 1) may be present.
template <class KeyOf>
uint64_t CountMaybe(const FilterReader& filter, uint64_t first, uint64_t count, KeyOf key_of, bool hashed = false) {
  std::vector<uint64_t> keys, bitmap(64);
  uint64_t maybe = 0;
  for (uint64_t i = first; i < first + count;) {
    keys.resize(first + count - i < 4096 ? first + count - i : 4096);
    for (uint64_t& key : keys) key = key_of(i++);
    hashed ? filter.MayContainHashBatch(keys, bitmap) : filter.MayContainBatch(keys, bitmap);
    for (size_t word = 0; word < BitmapWords(keys.size()); ++word) {
      maybe += static_cast<uint64_t>(std::popcount(bitmap[word]));
    }
  }
  return maybe;
}

// A bijection of u64 that the library does not use (MurmurHash3's finalizer): distinct random keys by number.
inline uint64_t RandomKey(uint64_t i) {
  i = (i ^ (i >> 33)) * 0xff51afd7ed558ccd;
  i = (i ^ (i >> 33)) * 0xc4ceb9fe1a85ec53;
  return i ^ (i >> 33);
}

}  // namespace bloomline::test
