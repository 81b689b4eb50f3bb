// FilterConfig: everything that is decided before a filter's memory is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bloomline/error.h"
#include "bloomline/export.h"
#include "bloomline/layout.h"
#include "bloomline/memory.h"

namespace bloomline {

// What the keys of a filter are. Travels with the file so that a query hashes as the build did. The library itself
// accepts every kind of key at any time; the command line refuses a mismatch.
enum class KeyKind : uint8_t {
  kUnspecified = 0,
  kU64 = 1,     // integers, hashed by Mix
  kBytes = 2,   // byte strings, hashed by XXH3
  kHashed = 3,  // the caller supplies well-mixed 64-bit hashes
};
BLOOMLINE_API const char* KeyKindName(KeyKind kind) noexcept;  // "unspecified", "u64", "bytes", "hashed"

// How a filter is sized and laid out. A value type: pure arithmetic, no memory behind it.
//
//   auto config = FilterConfig::ForFpr(10'000'000, 0.01).WithSeed(7);
class BLOOMLINE_API FilterConfig {
 public:
  // The smallest filter that meets `target_fpr` when it holds `expected_keys` keys, by the models of fpr_model.h.
  //   expected_keys  1 … 2^40
  //   target_fpr     above 0 and below 1; above expected_keys · 2^-64
  //   layout, k      kAuto and 0 choose
  // Throws Error(kInvalidArgument).
  static FilterConfig ForFpr(uint64_t expected_keys, double target_fpr, Layout layout = Layout::kAuto, int k = 0);
  static Result<FilterConfig> TryForFpr(uint64_t expected_keys, double target_fpr, Layout layout = Layout::kAuto,
                                        int k = 0);

  // A filter of at least `bits` bits (m), rounded up to whole blocks; 1 … 512 · (2^32 − 1).
  static FilterConfig ForBits(uint64_t bits, int k = 8, Layout layout = Layout::kSplit512);
  static Result<FilterConfig> TryForBits(uint64_t bits, int k = 8, Layout layout = Layout::kSplit512);

  // A filter of expected_keys · bits_per_key bits of memory (counting4: 4 bits are a counter). bits_per_key 1 … 1024. 0
  // chooses the k with the lowest FPR; kAuto the fastest layout that needs at most 5 % more memory than the best to
  // reach the best's FPR.
  static FilterConfig ForBitsPerKey(uint64_t expected_keys, double bits_per_key, Layout layout = Layout::kAuto,
                                    int k = 0);
  static Result<FilterConfig> TryForBitsPerKey(uint64_t expected_keys, double bits_per_key,
                                               Layout layout = Layout::kAuto, int k = 0);

  FilterConfig(const FilterConfig& other);
  FilterConfig(FilterConfig&& other) noexcept;
  FilterConfig& operator=(const FilterConfig& other);
  FilterConfig& operator=(FilterConfig&& other) noexcept;
  ~FilterConfig();

  // Copies with one thing changed. They throw Error(kOutOfMemory) where no memory for their texts is left.
  // An independent family of hash functions per seed; the seed is stored in snapshots.
  FilterConfig WithSeed(uint64_t seed) const;
  FilterConfig WithKeyKind(KeyKind kind) const;
  FilterConfig WithMemory(const MemoryPolicy& policy) const;
  // The SIMD target by name (target.h); empty: the process's choice.
  FilterConfig WithTarget(std::string_view name) const;

  Layout layout() const noexcept { return layout_; }  // never kAuto: the choice is made
  int k() const noexcept { return k_; }
  uint64_t blocks() const noexcept { return blocks_; }
  uint64_t bits() const noexcept { return blocks_ * static_cast<uint64_t>(BlockBits(layout_)); }
  uint64_t expected_keys() const noexcept { return expected_keys_; }           // 0: unknown (ForBits)
  BLOOMLINE_INLINE double target_fpr() const noexcept { return target_fpr_; }  // 0: none given
  double PredictedFpr() const noexcept;                                        // at expected_keys
  uint64_t seed() const noexcept { return seed_; }
  KeyKind key_kind() const noexcept { return key_kind_; }
  const MemoryPolicy& memory() const noexcept { return memory_; }
  const std::string& target() const noexcept { return target_; }
  // Why this layout: one sentence, empty where the caller named it.
  const std::string& reason() const noexcept { return reason_; }

 private:
  friend class Filter;
  FilterConfig() = default;

  Layout layout_ = Layout::kSplit512;
  int k_ = 8;
  uint64_t blocks_ = 1;
  uint64_t expected_keys_ = 0;
  double target_fpr_ = 0;
  uint64_t seed_ = 0;
  KeyKind key_kind_ = KeyKind::kUnspecified;
  MemoryPolicy memory_;
  std::string target_;
  std::string reason_;
};

}  // namespace bloomline
