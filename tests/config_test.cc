// Sizing is pure arithmetic: nothing here allocates a filter.
#include "bloomline/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "bloomline/fpr_model.h"

namespace bloomline {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr uint64_t kAbsurdKeys[] = {0, (uint64_t{1} << 40) + 1, 1'000'000'000'000'000'000, uint64_t{1} << 63,
                                    std::numeric_limits<uint64_t>::max()};

// The call failed as a bad argument, and the message starts with `start` ("argument = value") and says what is allowed.
void ExpectInvalid(const Result<FilterConfig>& result, const std::string& start) {
  ASSERT_FALSE(result.ok()) << start;
  EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument) << start;
  const std::string message = result.error().what();
  EXPECT_EQ(message.substr(0, start.size()), start) << message;
  EXPECT_NE(message.find("must be"), std::string::npos) << message;
}

TEST(ForFpr, MemoryGrowsMonotonicallyWithTheKeys) {
  for (const Layout layout : {Layout::kSplit512, Layout::kWord64, Layout::kLine512}) {
    uint64_t before = 0;
    const double per_key = BitsPerKeyForFpr(layout, FilterConfig::ForFpr(1'000'000, 0.001, layout).k(), 0.001);
    for (double n = std::pow(2, 20); n <= std::pow(2, 33); n *= 1.02) {
      const FilterConfig config = FilterConfig::ForFpr(static_cast<uint64_t>(n), 0.001, layout);
      EXPECT_GT(config.bits(), before) << n;
      // Nor does it jump: with so many blocks each key takes what it takes in the limit.
      EXPECT_NEAR(static_cast<double>(config.bits()) / n / per_key, 1.0, 1e-3) << n;
      before = config.bits();
    }
  }
}

TEST(ForFpr, FineStepsAroundPowersOfTwoMeetTheTarget) {
  for (const uint64_t around : {uint64_t{1} << 12, uint64_t{1} << 20, uint64_t{1} << 29}) {
    uint64_t before = 0;
    for (uint64_t n = around - 40; n <= around + 40; ++n) {
      const FilterConfig config = FilterConfig::ForFpr(n, 0.01, Layout::kSplit512);
      EXPECT_LE(config.PredictedFpr(), 0.01) << n;
      EXPECT_GE(config.blocks(), before) << n;
      before = config.blocks();
    }
  }
}

TEST(ForFpr, TinyAndOddNumbersOfKeysMeetTheTarget) {
  for (const double target : {1e-2, 1e-7}) {
    for (uint64_t n = 1; n <= 500; ++n) {
      const FilterConfig config = FilterConfig::ForFpr(n, target);
      EXPECT_LE(config.PredictedFpr(), target) << n;
      EXPECT_GT(config.PredictedFpr(), 0.0) << n;
      EXPECT_GE(config.blocks(), 1u);
      // And not bought by waste: 100 keys at 1e-7 want some 700 bytes.
      EXPECT_LE(config.bits(), 512 + 70 * n) << n;
    }
    for (const uint64_t n : {uint64_t{218793}, uint64_t{999983}, uint64_t{7919}}) {
      EXPECT_LE(FilterConfig::ForFpr(n, target).PredictedFpr(), target) << n;
      for (const Layout layout : {Layout::kWord64, Layout::kSector512z2, Layout::kSector512z4, Layout::kSplit512,
                                  Layout::kLine512, Layout::kSplit256}) {
        const Result<FilterConfig> config = FilterConfig::TryForFpr(n, target, layout);
        ASSERT_TRUE(config.ok());
        EXPECT_LE(config->PredictedFpr(), target);
        // The smallest of this layout: one block less misses the target with every k.
        for (int k = 1; k <= 16; ++k) {
          if (!IsValidHashCount(layout, k)) continue;
          EXPECT_GT(PredictedFpr(layout, k, config->blocks() - 1, n), target) << LayoutNameWithK(layout, k);
        }
      }
    }
  }
}

TEST(ForFpr, HighTargetsAreMonotoneAndHaveABlock) {
  uint64_t before = std::numeric_limits<uint64_t>::max();
  for (double target = 0.3; target < 0.995; target += 0.01) {
    const FilterConfig config = FilterConfig::ForFpr(1'000'000, target, Layout::kSplit512);
    EXPECT_LE(config.blocks(), before);
    EXPECT_GE(config.blocks(), 1u);
    EXPECT_LE(config.PredictedFpr(), target);
    before = config.blocks();
  }
  EXPECT_EQ(FilterConfig::ForFpr(1, 0.99, Layout::kSplit512).blocks(), 1u);
  EXPECT_GE(FilterConfig::ForFpr(1'000'000, 0.99).blocks(), 1u);
}

TEST(ForFpr, SwappedArgumentsAreRefused) {
  // ForFpr(0.01, 10'000'000) arrives as zero keys and a target of ten million.
  ExpectInvalid(FilterConfig::TryForFpr(static_cast<uint64_t>(0.01), 1e7),
                "expected_keys = 0: must be 1 to 1099511627776");
  ExpectInvalid(FilterConfig::TryForFpr(1, 1e7), "target_fpr = 1e+07: must be above 0 and below 1");
}

TEST(ForFpr, BadArgumentsAreNamed) {
  ExpectInvalid(FilterConfig::TryForFpr(10, 1.5), "target_fpr = 1.5: must be above 0 and below 1");
  ExpectInvalid(FilterConfig::TryForFpr(10, kNaN), "target_fpr = nan: ");
  ExpectInvalid(FilterConfig::TryForFpr(10, -kNaN), "target_fpr = nan: ");
  ExpectInvalid(FilterConfig::TryForFpr(10, kInfinity), "target_fpr = inf: ");
  ExpectInvalid(FilterConfig::TryForFpr(10, -kInfinity), "target_fpr = -inf: ");
  ExpectInvalid(FilterConfig::TryForFpr(10, -0.0), "target_fpr = -0: ");
  ExpectInvalid(FilterConfig::TryForFpr(10, 0.0), "target_fpr = 0: ");
  ExpectInvalid(FilterConfig::TryForFpr(10, 1.0), "target_fpr = 1: ");
  ExpectInvalid(FilterConfig::TryForFpr(10, -1.0), "target_fpr = -1: ");
  for (const uint64_t n : kAbsurdKeys) {
    ExpectInvalid(FilterConfig::TryForFpr(n, 0.01), "expected_keys = " + std::to_string(n) + ": ");
    ExpectInvalid(FilterConfig::TryForBitsPerKey(n, 10), "expected_keys = " + std::to_string(n) + ": ");
  }
  for (const int k : {-1, 17, 255}) {
    for (const Layout layout : {Layout::kAuto, Layout::kWord64, Layout::kSector512z2, Layout::kLine512,
                                Layout::kSplit512, Layout::kSplit256}) {
      ExpectInvalid(FilterConfig::TryForFpr(10, 0.01, layout, k), "k = " + std::to_string(k) + ": ");
      ExpectInvalid(FilterConfig::TryForBitsPerKey(10, 10, layout, k), "k = " + std::to_string(k) + ": ");
    }
  }
  ExpectInvalid(FilterConfig::TryForFpr(10, 0.01, Layout::kSector512z2, 5), "k = 5: must be a multiple of 2");
  ExpectInvalid(FilterConfig::TryForFpr(10, 0.01, Layout::kSplit256, 7), "k = 7: must be 8 for split256");
  ExpectInvalid(FilterConfig::TryForFpr(10, 0.01, static_cast<Layout>(99)), "layout = 99: ");
}

TEST(ForFpr, TheHashFloorIsNamed) {
  const Result<FilterConfig> result = FilterConfig::TryForFpr(uint64_t{1} << 40, 5e-8);
  ExpectInvalid(result, "target_fpr = 5e-08: must be above expected_keys * 2^-64");
  // Just above the floor of 1000 keys (5.4e-17) the size decides.
  EXPECT_FALSE(FilterConfig::TryForFpr(1000, 5.4e-17, Layout::kLine512).ok());
  EXPECT_TRUE(FilterConfig::TryForFpr(1000, 1e-15, Layout::kLine512).ok());
}

TEST(ForFpr, OutOfReachIsAnErrorBeforeAnyAllocation) {
  for (const auto& result : {FilterConfig::TryForFpr(uint64_t{1} << 40, 0.01),
                             FilterConfig::TryForFpr(uint64_t{1} << 40, 1e-7, Layout::kLine512, 16),
                             FilterConfig::TryForFpr(3'000'000'000, 0.001, Layout::kSplit256)}) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(result.error().what()).find("cannot be reached for expected_keys"), std::string::npos);
  }
}

TEST(ForFpr, ThrowsWhatItsTwinReturns) {
  try {
    FilterConfig::ForFpr(10, 1.5);
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(error.what(), FilterConfig::TryForFpr(10, 1.5).error().what());
  }
  EXPECT_THROW(FilterConfig::ForBits(0), Error);
  EXPECT_THROW(FilterConfig::ForBitsPerKey(10, kNaN), Error);
}

TEST(Auto, ChoosesByMemoryAndCostAndSaysWhy) {
  for (const double target : {0.02, 0.01, 0.001}) {
    const FilterConfig config = FilterConfig::ForFpr(10'000'000, target);
    EXPECT_EQ(LayoutNameWithK(config.layout(), config.k()), "split512") << target;
    EXPECT_EQ(config.reason().find("split512 (k = 8): "), 0u) << config.reason();
  }
  for (const double bits_per_key : {9.0, 10.0, 12.0, 16.0}) {
    EXPECT_EQ(FilterConfig::ForBitsPerKey(1'000'000, bits_per_key).layout(), Layout::kSplit512) << bits_per_key;
  }
  // A high FPR wants fewer than split512's eight bits, a low one more.
  EXPECT_EQ(FilterConfig::ForFpr(10'000'000, 0.2).layout(), Layout::kWord64);
  EXPECT_LT(FilterConfig::ForFpr(10'000'000, 0.2).k(), 8);
  EXPECT_GT(FilterConfig::ForFpr(10'000'000, 1e-7).k(), 8);

  // Whatever is chosen: at most 5 % more memory than the smallest of all.
  for (const double target : {0.9, 0.3, 0.1, 0.05, 0.01, 1e-3, 1e-4, 1e-5, 1e-6}) {
    const uint64_t n = 1'000'003;
    const FilterConfig chosen = FilterConfig::ForFpr(n, target);
    EXPECT_LE(chosen.PredictedFpr(), target);
    EXPECT_FALSE(chosen.reason().empty());
    for (const Layout layout : {Layout::kWord64, Layout::kSector512z2, Layout::kSector512z4, Layout::kSector512z8,
                                Layout::kLine512, Layout::kSplit256}) {
      const Result<FilterConfig> other = FilterConfig::TryForFpr(n, target, layout);
      if (!other.ok()) continue;
      EXPECT_LE(static_cast<double>(chosen.bits()), 1.05 * static_cast<double>(other->bits())) << target;
      EXPECT_TRUE(other->reason().empty());
    }
  }
  // A k that only some layouts have.
  const FilterConfig odd = FilterConfig::ForFpr(1'000'000, 0.02, Layout::kAuto, 5);
  EXPECT_EQ(odd.k(), 5);
  EXPECT_LE(odd.PredictedFpr(), 0.02);
}

// Nothing that auto picks is beaten in both predicted FPR and measured cost at the same size. The costs are the ratios
// to limit/hash_touch/1MiB that bloomline_bench measured on AVX-512.
TEST(Auto, IsNotBeatenInBothFprAndCost) {
  struct Measured {
    Layout layout;
    int least_k;
    int most_k;
    double cost;
  };
  constexpr Measured kMeasured[] = {
      {Layout::kWord64, 1, 8, 1.05},      {Layout::kWord64, 9, 16, 1.50},       {Layout::kSplit256, 8, 8, 1.10},
      {Layout::kSplit512, 8, 8, 1.22},    {Layout::kLine512, 1, 7, 1.25},       {Layout::kLine512, 8, 8, 1.45},
      {Layout::kLine512, 9, 16, 2.10},    {Layout::kSector512z2, 2, 8, 1.33},   {Layout::kSector512z2, 10, 16, 1.80},
      {Layout::kSector512z4, 4, 8, 1.33}, {Layout::kSector512z4, 12, 16, 1.90}, {Layout::kSector512z8, 16, 16, 1.57}};
  const auto cost_of = [&](Layout layout, int k) {
    for (const Measured& measured : kMeasured) {
      if (measured.layout == layout && k >= measured.least_k && k <= measured.most_k) return measured.cost;
    }
    return 0.0;
  };
  for (const double target : {0.7, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8}) {
    const uint64_t n = 300'007;
    const FilterConfig chosen = FilterConfig::ForFpr(n, target);
    const double cost = cost_of(chosen.layout(), chosen.k());
    ASSERT_GT(cost, 0.0) << LayoutNameWithK(chosen.layout(), chosen.k());
    for (const Measured& other : kMeasured) {
      if (other.cost >= cost) continue;
      for (int k = other.least_k; k <= other.most_k; ++k) {
        if (!IsValidHashCount(other.layout, k)) continue;
        const uint64_t blocks = chosen.bits() / static_cast<uint64_t>(BlockBits(other.layout));
        EXPECT_GT(PredictedFpr(other.layout, k, blocks, n), chosen.PredictedFpr())
            << target << ": " << LayoutNameWithK(other.layout, k) << " beats "
            << LayoutNameWithK(chosen.layout(), chosen.k());
      }
    }
  }
}

TEST(ForBits, RoundsUpToWholeBlocks) {
  EXPECT_EQ(FilterConfig::ForBits(1).blocks(), 1u);
  EXPECT_EQ(FilterConfig::ForBits(512).blocks(), 1u);
  EXPECT_EQ(FilterConfig::ForBits(513).blocks(), 2u);
  EXPECT_EQ(FilterConfig::ForBits(513, 8, Layout::kSplit256).blocks(), 3u);
  const uint64_t most = 512 * ((uint64_t{1} << 32) - 1);
  EXPECT_EQ(FilterConfig::ForBits(most).blocks(), (uint64_t{1} << 32) - 1);
  EXPECT_EQ(FilterConfig::ForBits(most).bits(), most);
  EXPECT_EQ(FilterConfig::ForBits(uint64_t{1} << 34, 8, Layout::kSplit256).blocks(), uint64_t{1} << 26);
  EXPECT_EQ(FilterConfig::ForBits(4096).expected_keys(), 0u);
  EXPECT_EQ(FilterConfig::ForBits(4096).PredictedFpr(), 0.0);
}

TEST(ForBits, BadArgumentsAreNamed) {
  ExpectInvalid(FilterConfig::TryForBits(0), "bits = 0: must be 1 to 2199023255040");
  ExpectInvalid(FilterConfig::TryForBits(512 * ((uint64_t{1} << 32) - 1) + 1), "bits = 2199023255041: ");
  ExpectInvalid(FilterConfig::TryForBits(1'000'000'000'000'000'000), "bits = 1000000000000000000: ");
  ExpectInvalid(FilterConfig::TryForBits(std::numeric_limits<uint64_t>::max()), "bits = 18446744073709551615: ");
  ExpectInvalid(FilterConfig::TryForBits((uint64_t{1} << 34) + 1, 8, Layout::kSplit256), "bits = 17179869185: ");
  for (const int k : {0, 17, 255, -8}) {
    ExpectInvalid(FilterConfig::TryForBits(512, k), "k = " + std::to_string(k) + ": ");
    ExpectInvalid(FilterConfig::TryForBits(512, k, Layout::kWord64), "k = " + std::to_string(k) + ": ");
  }
  const Result<FilterConfig> without_layout = FilterConfig::TryForBits(512, 8, Layout::kAuto);
  ASSERT_FALSE(without_layout.ok());
  EXPECT_NE(std::string(without_layout.error().what()).find("layout = auto"), std::string::npos);
}

TEST(ForBitsPerKey, SizesAndChoosesK) {
  const FilterConfig config = FilterConfig::ForBitsPerKey(10'000'000, 10, Layout::kSplit512);
  EXPECT_EQ(config.blocks(), 195313u);
  EXPECT_EQ(config.k(), 8);
  EXPECT_EQ(config.expected_keys(), 10'000'000u);
  EXPECT_EQ(config.target_fpr(), 0.0);
  EXPECT_NEAR(config.PredictedFpr(), 0.010490, 1e-6);
  EXPECT_EQ(FilterConfig::ForBitsPerKey(1'000'000, 10, Layout::kWord64).k(), 5);
  EXPECT_EQ(FilterConfig::ForBitsPerKey(1'000'000, 10, Layout::kSector512z2).k(), 6);
  EXPECT_EQ(FilterConfig::ForBitsPerKey(1'000'000, 10, Layout::kLine512, 3).k(), 3);
  EXPECT_EQ(FilterConfig::ForBitsPerKey(1, 1).blocks(), 1u);
}

TEST(ForBitsPerKey, BadArgumentsAreNamed) {
  for (const double bits : {0.0, -0.0, 0.999, 1024.5, -1.0, 1e300}) {
    ASSERT_FALSE(FilterConfig::TryForBitsPerKey(10, bits).ok()) << bits;
  }
  ExpectInvalid(FilterConfig::TryForBitsPerKey(10, kNaN), "bits_per_key = nan: must be 1 to 1024");
  ExpectInvalid(FilterConfig::TryForBitsPerKey(10, kInfinity), "bits_per_key = inf: must be 1 to 1024");
  ExpectInvalid(FilterConfig::TryForBitsPerKey(10, -kInfinity), "bits_per_key = -inf: must be 1 to 1024");
  ExpectInvalid(FilterConfig::TryForBitsPerKey(uint64_t{1} << 40, 10), "bits_per_key = 10: times expected_keys");
}

TEST(FilterConfig, WithMakesCopies) {
  const FilterConfig base = FilterConfig::ForFpr(1000, 0.01);
  const FilterConfig other = base.WithSeed(7)
                                 .WithKeyKind(KeyKind::kBytes)
                                 .WithTarget("AVX2")
                                 .WithMemory({.pages = Pages::kDefault, .lazy = true});
  EXPECT_EQ(base.seed(), 0u);
  EXPECT_EQ(base.key_kind(), KeyKind::kUnspecified);
  EXPECT_EQ(other.seed(), 7u);
  EXPECT_EQ(other.key_kind(), KeyKind::kBytes);
  EXPECT_EQ(other.target(), "AVX2");
  EXPECT_TRUE(other.memory().lazy);
  EXPECT_EQ(other.blocks(), base.blocks());
  EXPECT_STREQ(KeyKindName(KeyKind::kU64), "u64");
  EXPECT_STREQ(KeyKindName(KeyKind::kHashed), "hashed");
  EXPECT_STREQ(KeyKindName(KeyKind::kBytes), "bytes");
  EXPECT_STREQ(KeyKindName(KeyKind::kUnspecified), "unspecified");
  EXPECT_STREQ(KeyKindName(static_cast<KeyKind>(99)), "unknown");
}

}  // namespace
}  // namespace bloomline
