// Measured false-positive rates against the model. Both have an error: the probes are a sample (binomial), and the
// content of a filter of n keys is one, too (ContentRelativeDeviation); a rate is judged at 5 standard deviations of
// their sum. Some 760 such comparisons in this file, each wrong by chance in 6 of 10 million: for 1 in 2300 choices of
// keys one of them would fail, and the keys are fixed.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/fpr_model.h"
#include "tests/test_util.h"

namespace bloomline {
namespace {

using test::LayoutAndK;

constexpr double kSigmas = 5;

void ExpectRate(double rate, double model, double probes, double content, const std::string& what) {
  const double deviation = test::RateDeviation(model, probes, content);
  EXPECT_NEAR(rate, model, kSigmas * deviation + 1 / probes)
      << what << ": " << (rate - model) / deviation << " standard deviations";
}

template <class KeyOf>
void ExpectModel(LayoutAndK shape, double bits_per_key, uint64_t n, uint64_t probes, const std::string& what,
                 KeyOf key_of) {
  Filter filter(FilterConfig::ForBitsPerKey(n, bits_per_key, shape.layout, shape.k));
  test::InsertMany(filter, n, key_of);
  ASSERT_EQ(test::CountMaybe(filter, 0, n, key_of), n) << what << ": false negatives";
  const auto count = static_cast<double>(test::CountMaybe(filter, n, probes, key_of));
  const double model = PredictedFpr(shape.layout, shape.k, filter.blocks(), n);
  const double content = ContentRelativeDeviation(shape.layout, shape.k, filter.blocks(), n);
  const auto trials = static_cast<double>(probes);
  const std::string label = shape.Name() + ", " + std::to_string(bits_per_key) + " bits per key, " + what;
  ExpectRate(count / trials, model, trials, content, label);
  // What the content says exactly leaves the probes' error only.
  ExpectRate(count / trials, filter.MeasuredFillFpr(), trials, 0, label + ", against the fill");
}

TEST(MeasuredFpr, Split512AtTenBits) {
  const LayoutAndK split512 = {Layout::kSplit512, 8};
  // 1.0490 %: computed from the model outside of this project.
  EXPECT_NEAR(PredictedFprAt(Layout::kSplit512, 8, 10), 0.010490, 5e-7);
  EXPECT_NEAR(PredictedFpr(Layout::kSplit512, 8, 19532, 1'000'000), 0.010490, 1e-5);
  ExpectModel(split512, 10, 1'000'000, 10'000'000, "random keys", test::RandomKey);
}

TEST(MeasuredFpr, EveryLayoutAndK) {
  for (const LayoutAndK& shape : test::AllLayouts()) {
    for (const double bits_per_key : {6.0, 8.0, 10.0, 12.0, 16.0, 20.0}) {
      ExpectModel(shape, bits_per_key, 200'000, 1'000'000, "random keys", test::RandomKey);
    }
  }
}

// One block only, and few: the model is binomial there, not its limit.
TEST(MeasuredFpr, FewBlocks) {
  for (const LayoutAndK& shape : {LayoutAndK{Layout::kSplit512, 8}, LayoutAndK{Layout::kWord64, 4},
                                  LayoutAndK{Layout::kLine512, 6}, LayoutAndK{Layout::kSplit256, 8}}) {
    for (const uint64_t blocks : {1u, 2u, 5u}) {
      const uint64_t n = blocks * static_cast<uint64_t>(BlockBits(shape.layout)) / 10;
      // The mean of the fill-exact rates over many contents: no probing, the model's own statement.
      double mean = 0, squares = 0;
      constexpr int kContents = 2000;
      for (uint64_t content = 0; content < kContents; ++content) {
        Filter filter(test::SmallConfig(shape.layout, shape.k, blocks));
        for (uint64_t i = 0; i < n; ++i) filter.Insert(test::RandomKey(content * 10'000 + i));
        const double rate = filter.MeasuredFillFpr();
        mean += rate / kContents;
        squares += rate * rate / kContents;
      }
      const double deviation = std::sqrt((squares - mean * mean) / kContents);
      EXPECT_NEAR(mean, PredictedFpr(shape.layout, shape.k, blocks, n), kSigmas * deviation)
          << shape.Name() << " of " << blocks << " blocks";
    }
  }
}

// ---- Keys as they are, not random ones.
struct Structure {
  std::string name;
  uint64_t (*key_of)(uint64_t i);
};

template <int kShift>
uint64_t Stride(uint64_t i) {
  return i << kShift;
}

const Structure kStructures[] = {
    {"sequential", [](uint64_t i) { return i; }},
    {"sequential down from 2^64", [](uint64_t i) { return ~i; }},
    {"sequential around 2^32", [](uint64_t i) { return (uint64_t{1} << 32) - 100'000 + i; }},
    {"stride 2^1", Stride<1>},
    {"stride 2^3", Stride<3>},
    {"stride 2^8", Stride<8>},
    {"stride 2^12", Stride<12>},
    {"stride 2^16", Stride<16>},
    {"stride 2^20", Stride<20>},
    {"stride 2^24", Stride<24>},
    {"stride 2^28", Stride<28>},
    {"stride 2^31", Stride<31>},
    {"stride 2^32", Stride<32>},
    {"stride 2^33", Stride<33>},
    {"stride 2^36", Stride<36>},
    {"stride 2^40", Stride<40>},
    {"stride 2^43", Stride<43>},
    {"stride 10", [](uint64_t i) { return i * 10; }},
    {"stride 1000003", [](uint64_t i) { return i * 1000003; }},
    {"big-endian counter", [](uint64_t i) { return __builtin_bswap64(i); }},
    {"bit-reversed counter",
     [](uint64_t i) {
       uint64_t reversed = 0;
       for (int bit = 0; bit < 64; ++bit) reversed |= ((i >> bit) & 1) << (63 - bit);
       return reversed;
     }},
    {"both halves equal", [](uint64_t i) { return i << 32 | i; }},
    {"both halves opposite", [](uint64_t i) { return i << 32 | (~i & 0xffffffff); }},
    {"halves i and i + 1, spread", [](uint64_t i) { return i << 42 | ((i << 10) + 1); }},
    {"halves i and 8 i", [](uint64_t i) { return i << 32 | i << 3; }},
    {"halves i and i / 2", [](uint64_t i) { return i << 32 | i >> 1; }},
    {"halves of a grid", [](uint64_t i) { return i >> 10 << 32 | (i & 1023); }},
    {"dense low bits under a constant", [](uint64_t i) { return 0xabcdef0000000000 | i; }},
    {"dense low bits of each byte",
     [](uint64_t i) {  // 3 bits of i per byte
       uint64_t spread = 0;
       for (int byte = 0; byte < 8; ++byte) spread |= ((i >> (3 * byte)) & 7) << (8 * byte);
       return spread;
     }},
    {"every third bit",
     [](uint64_t i) {
       uint64_t spread = 0;
       for (int bit = 0; bit < 21; ++bit) spread |= ((i >> bit) & 1) << (3 * bit);
       return spread;
     }},
    {"Gray code", [](uint64_t i) { return i ^ (i >> 1); }},
    {"squares", [](uint64_t i) { return i * i; }},
    {"pointers to 16-byte objects", [](uint64_t i) { return 0x00007f3a5c000010 + 16 * i; }},
    {"pointers to lines", [](uint64_t i) { return 0x0000561234567000 + 64 * i; }},
    {"pointers to pages", [](uint64_t i) { return 0x00007f0000000000 + 4096 * i; }},
    {"IPv4, network order", [](uint64_t i) { return 0x0a000000 + i; }},
    {"IPv4, read little-endian",
     [](uint64_t i) { return uint64_t{__builtin_bswap32(static_cast<uint32_t>(0x0a000000 + i))}; }},
    {"timestamps in ns, one per us", [](uint64_t i) { return 1'700'000'000'000'000'000 + 1000 * i; }},
    {"doubles of integers", [](uint64_t i) { return std::bit_cast<uint64_t>(static_cast<double>(i + 1)); }},
    {"doubles of tenths", [](uint64_t i) { return std::bit_cast<uint64_t>(static_cast<double>(i) * 0.1); }},
    {"doubles in [1, 2)", [](uint64_t i) { return std::bit_cast<uint64_t>(1 + static_cast<double>(i) / (1 << 22)); }},
    {"floats of integers", [](uint64_t i) { return uint64_t{std::bit_cast<uint32_t>(static_cast<float>(i + 1))}; }},
};

TEST(MeasuredFpr, StructuredKeys) {
  for (const LayoutAndK& shape :
       {LayoutAndK{Layout::kSplit512, 8}, LayoutAndK{Layout::kWord64, 5}, LayoutAndK{Layout::kSector512z2, 6},
        LayoutAndK{Layout::kLine512, 7}, LayoutAndK{Layout::kSplit256, 8}}) {
    for (const Structure& structure : kStructures) {
      ExpectModel(shape, 10, 250'000, 1'500'000, structure.name, structure.key_of);
    }
  }
}

// Foreign keys of another structure than the members, as a join's probe side has.
TEST(MeasuredFpr, ForeignStructures) {
  Filter filter(FilterConfig::ForBitsPerKey(500'000, 10, Layout::kSplit512, 8));
  test::InsertMany(filter, 500'000, [](uint64_t i) { return i; });
  const double exact = filter.MeasuredFillFpr();
  for (const Structure& structure : kStructures) {
    uint64_t probes = 0, maybe = 0;
    for (uint64_t i = 0; i < 1'000'000; ++i) {
      const uint64_t key = structure.key_of(i);
      if (key < 500'000) continue;
      ++probes;
      maybe += filter.MayContain(key);
    }
    const auto trials = static_cast<double>(probes);
    ExpectRate(static_cast<double>(maybe) / trials, exact, trials, 0, structure.name);
  }
}

// Short strings that differ in a digit, long ones that differ at the end, prefixes of each other.
TEST(MeasuredFpr, Strings) {
  struct Family {
    const char* name;
    std::string (*key_of)(uint64_t i);
  };
  constexpr uint64_t kKeys = 100'000, kProbes = 400'000;
  const Family families[] = {
      {"digits", [](uint64_t i) { return std::to_string(i); }},
      {"urls", [](uint64_t i) { return "https://example.org/users/profile?id=" + std::to_string(i) + "&lang=en"; }},
      {"little-endian bytes", [](uint64_t i) { return std::string(reinterpret_cast<const char*>(&i), sizeof(i)); }},
      {"200 bytes and a counter", [](uint64_t i) { return std::string(200, 'x') + std::to_string(i); }},
      {"two axes", [](uint64_t i) { return std::string(i % 997, 'a') + std::to_string(i / 997); }},
  };
  for (const Family& family : families) {
    Filter filter(FilterConfig::ForBitsPerKey(kKeys, 10, Layout::kSplit512, 8));
    for (uint64_t i = 0; i < kKeys; ++i) filter.Insert(family.key_of(i));
    for (uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(filter.MayContain(family.key_of(i))) << family.name << " " << i;
    uint64_t maybe = 0;
    for (uint64_t i = kKeys; i < kKeys + kProbes; ++i) maybe += filter.MayContain(family.key_of(i));
    ExpectRate(static_cast<double>(maybe) / kProbes, filter.PredictedFpr(), kProbes,
               ContentRelativeDeviation(filter.layout(), filter.k(), filter.blocks(), kKeys), family.name);
  }
}

}  // namespace
}  // namespace bloomline
