// The hash and the addressing: part of the file format, so every bit is pinned.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "bloomline/filter.h"
#include "kernels/layout.h"
#include "tests/test_util.h"

namespace bloomline {
namespace {

using test::Random;

// Computed in Python's unbounded integers, reduced modulo 2^64.
struct GoldenMix {
  uint64_t key, seed, hash;
};
constexpr GoldenMix kGoldenMix[] = {
    {0x0000000000000000, 0x0000000000000000, 0x00f9dd95d366dbb1},
    {0x0000000000000001, 0x0000000000000000, 0x42073fdde29aa6dc},
    {0x0000000000000002, 0x0000000000000000, 0x50edf664943e99df},
    {0xffffffffffffffff, 0x0000000000000000, 0xc66779a5697f71a3},
    {0x0000000000000000, 0x0000000000000001, 0x6f65bc3c59b6bfd8},
    {0x0000000000000000, 0x000000000000002a, 0x1f90772adcd5c43d},
    {0x000000000000002a, 0x000000000000002a, 0x497f731e2307b28e},
    {0x0123456789abcdef, 0x0000000000000000, 0x0f7c2c4c15bff447},
    {0x0123456789abcdef, 0xfedcba9876543210, 0xebb1c097e276bbac},
    {0x8000000000000000, 0x0000000000000000, 0x9f5fafaceb7d4a22},
    {0x0000000100000000, 0x0000000000000007, 0xe72fe78beea58b20},
    {0x9e3779b97f4a7c15, 0x9e3779b97f4a7c15, 0x8347040344062ef3},
};

TEST(Hash, MixGolden) {
  for (const GoldenMix& golden : kGoldenMix) {
    EXPECT_EQ(detail::Mix(golden.key, golden.seed), golden.hash) << std::hex << golden.key << " " << golden.seed;
    EXPECT_EQ(HashInteger(golden.key, golden.seed), golden.hash);
  }
  EXPECT_EQ(FilterReader::Remixed(1), 0xe3386378aac08196);
}

// The inverse of an odd factor modulo 2^64 by Newton's iteration.
constexpr uint64_t InverseOf(uint64_t odd) {
  uint64_t inverse = odd;
  for (int i = 0; i < 6; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

uint64_t Unmix(uint64_t hash, uint64_t seed) {
  constexpr uint64_t kInverse = InverseOf(0xd6e8feb86659fd93);
  static_assert(kInverse * 0xd6e8feb86659fd93 == 1);
  uint64_t x = hash;
  x ^= x >> 32;  // a shift by half the width is its own inverse
  x *= kInverse;
  x ^= x >> 32;
  x *= kInverse;
  x ^= ((x >> 32) * 0x9e3779b9) >> 32;  // changes the low half by the high one only: its own inverse
  return x ^ detail::KeyMask(seed);
}

TEST(Hash, MixIsABijection) {
  Random random(1);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t seed = random.Next();
    for (const uint64_t key : {random.Next(), static_cast<uint64_t>(i), ~static_cast<uint64_t>(i),
                               static_cast<uint64_t>(i) << 44, uint64_t{1} << (i % 64)}) {
      ASSERT_EQ(Unmix(detail::Mix(key, seed), seed), key);
      ASSERT_EQ(detail::Mix(Unmix(key, seed), seed), key);
    }
  }
}

// Half of the hash's bits change, whichever bit of the key does; checked bit against bit.
TEST(Hash, MixAvalanche) {
  constexpr int kSamples = 4000;
  Random random(2);
  std::vector<int> flips(64 * 64);
  for (int sample = 0; sample < kSamples; ++sample) {
    const uint64_t key = random.Next();
    const uint64_t hash = detail::Mix(key, 42);
    for (size_t in = 0; in < 64; ++in) {
      const uint64_t difference = hash ^ detail::Mix(key ^ (uint64_t{1} << in), 42);
      for (size_t out = 0; out < 64; ++out) flips[in * 64 + out] += static_cast<int>((difference >> out) & 1);
    }
  }
  for (size_t i = 0; i < flips.size(); ++i) {
    EXPECT_NEAR(flips[i], kSamples / 2.0, 0.1 * kSamples) << "key bit " << i / 64 << ", hash bit " << i % 64;
  }
}

TEST(Hash, BytesAreXxh3) {
  EXPECT_EQ(HashBytes("", 0), 0x2d06800538d394c2);
  EXPECT_EQ(HashBytes("", 42), 0xb029411ff43d84d2);
  EXPECT_EQ(HashBytes("a", 0), 0xe6c632b61e964e1f);
  EXPECT_EQ(HashBytes("bloomline", 42), 0x0be809e8daf5f8fe);
  EXPECT_EQ(HashBytes(std::string_view("a\0b", 3), 1), 0x8ebed4bebe43fbe0);
  EXPECT_EQ(HashBytes(std::string(300, 'x'), 7), 0x65afa05e0f083a41);

  Random random(3);
  std::string bytes(1 << 20, '\0');
  for (char& c : bytes) c = static_cast<char>(random.Next());
  for (size_t length = 0; length <= 1100; ++length) {
    const uint64_t seed = random.Next();
    const std::string_view key = std::string_view(bytes).substr(length % 37, length);
    ASSERT_EQ(HashBytes(key, seed), XXH3_64bits_withSeed(key.data(), key.size(), seed)) << length;
  }
  EXPECT_EQ(HashBytes(bytes, 9), XXH3_64bits_withSeed(bytes.data(), bytes.size(), 9));
  EXPECT_EQ(HashBytes(std::string_view(), 9), XXH3_64bits_withSeed("", 0, 9)) << "a view of no memory";
}

std::vector<uint64_t> BlockCounts(Layout layout) {
  std::vector<uint64_t> counts = {
      1,    2,    3,     7,        8,       61,      64,       100,      1000,           1023,    1024,
      1025, 4099, 65537, 1u << 20, 1234567, 9999991, 33554431, 1u << 25, (1u << 26) - 1, 1u << 26};
  if (layout != Layout::kSplit256) {
    for (const uint64_t count :
         {(uint64_t{1} << 26) + 1, uint64_t{123456789}, (uint64_t{1} << 31) - 1, uint64_t{1} << 31,
          (uint64_t{1} << 31) + 1, (uint64_t{1} << 32) - 5, (uint64_t{1} << 32) - 1}) {
      counts.push_back(count);
    }
  }
  return counts;
}

TEST(BlockIndex, ExactAgainstWideArithmetic) {
  Random random(4);
  for (const Layout layout : test::kLayouts) {
    for (const uint64_t blocks : BlockCounts(layout)) {
      EXPECT_EQ(kernels::BlockOf(layout, 0, blocks), 0u);
      EXPECT_EQ(kernels::BlockOf(layout, ~uint64_t{0}, blocks), blocks - 1);
      for (int i = 0; i < 2000; ++i) {
        const uint64_t hash = random.Next();
        ASSERT_EQ(kernels::BlockOf(layout, hash, blocks), test::slow::BlockIndex(layout, hash, blocks)) << blocks;
        // Both sides of a block's first hash, where a rounding error would show.
        const uint64_t block = random.Below(blocks);
        const test::Wide scaled = (test::Wide{block} << 64) + blocks - 1;
        const uint64_t first = static_cast<uint64_t>(scaled / blocks);
        for (const uint64_t edge : {first - 1, first, first + 1}) {
          ASSERT_EQ(kernels::BlockOf(layout, edge, blocks), test::slow::BlockIndex(layout, edge, blocks)) << blocks;
        }
        if (layout != Layout::kSplit256 && block > 0) {
          ASSERT_EQ(kernels::BlockOf(layout, first, blocks), block);
          ASSERT_EQ(kernels::BlockOf(layout, first - 1, blocks), block - 1);
        }
      }
    }
  }
}

// Chi-square over at most 1024 bins, each with its exact share of the blocks.
double ChiSquareZ(Layout layout, uint64_t blocks, const std::vector<uint64_t>& hashes, bool low_digits) {
  const uint64_t bins = blocks < 1024 ? blocks : 1024;
  if (bins == 1) return 0;
  const auto bin_of = [&](uint64_t block) { return low_digits ? block % bins : block * bins / blocks; };
  std::vector<double> counts(bins);
  for (const uint64_t hash : hashes) counts[bin_of(kernels::BlockOf(layout, hash, blocks))] += 1;
  double chi_square = 0;
  for (uint64_t bin = 0; bin < bins; ++bin) {
    const uint64_t first = (bin * blocks + bins - 1) / bins, end = ((bin + 1) * blocks + bins - 1) / bins;
    const double share =
        static_cast<double>(low_digits ? (blocks - bin + bins - 1) / bins : end - first) / static_cast<double>(blocks);
    const double expected = share * static_cast<double>(hashes.size());
    chi_square += (counts[bin] - expected) * (counts[bin] - expected) / expected;
  }
  // Wilson and Hilferty 1931: the cube root of chi²/df is nearly normal.
  const double df = static_cast<double>(bins - 1);
  return (std::cbrt(chi_square / df) - (1 - 2 / (9 * df))) / std::sqrt(2 / (9 * df));
}

// Too uneven fails. (Sequential keys under a good bijection may well be spread more evenly than at random.)
TEST(BlockIndex, UniformByChiSquare) {
  constexpr size_t kKeys = 300'000;
  std::vector<std::pair<const char*, std::vector<uint64_t>>> sets(3);
  for (auto& [name, hashes] : sets) hashes.resize(kKeys);
  sets[0].first = "sequential";
  sets[1].first = "stride 2^40";
  sets[2].first = "strings";
  for (size_t i = 0; i < kKeys; ++i) {
    sets[0].second[i] = HashInteger(i, 0);
    sets[1].second[i] = HashInteger(static_cast<uint64_t>(i) << 40, 0);
    sets[2].second[i] = HashBytes("user:" + std::to_string(i), 0);
  }
  for (const Layout layout : {Layout::kSplit512, Layout::kSplit256}) {
    for (const uint64_t blocks : BlockCounts(layout)) {
      for (const auto& [name, hashes] : sets) {
        EXPECT_LT(ChiSquareZ(layout, blocks, hashes, false), 5) << name << ", " << blocks << " blocks";
        EXPECT_LT(ChiSquareZ(layout, blocks, hashes, true), 5) << name << ", " << blocks << " blocks, low digits";
      }
    }
  }
}

// A seed must change which keys share blocks and bits, even where the set of keys is closed under xor with it, as
// 0 … 65535 is under xor with 1. Otherwise a filter of the same keys under another seed has the very same bits.
TEST(Hash, SeedsAreIndependentOnDenseKeys) {
  test::slow::Filter a(Layout::kSplit512, 8, 1280), b(Layout::kSplit512, 8, 1280);
  for (uint64_t key = 0; key < 65536; ++key) {
    a.Insert(HashInteger(key, 0));
    b.Insert(HashInteger(key, 1));
  }
  size_t same = 0;
  for (size_t i = 0; i < a.words().size(); ++i) same += a.words()[i] == b.words()[i];
  EXPECT_LT(same, a.words().size() / 100) << "words that are the same under both seeds";
}

}  // namespace
}  // namespace bloomline
