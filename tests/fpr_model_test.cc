// The models against independent goldens, against brute force, and against filters filled at random.
#include "bloomline/fpr_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "engine/fpr_blocked.h"
#include "engine/occupancy.h"
#include "tests/golden_fpr.h"

namespace bloomline {
namespace {

using testing::GoldenClassicExact;
using testing::GoldenFpr;
using testing::kGoldenClassicExact;
using testing::kGoldenFpr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<LayoutChoice> EveryChoice() {
  std::vector<LayoutChoice> choices;
  for (const Layout layout : {Layout::kSector512z1, Layout::kSector512z2, Layout::kSector512z4, Layout::kSector512z8,
                              Layout::kLine512, Layout::kSplit256}) {
    for (int k = 1; k <= 16; ++k) {
      if (IsValidHashCount(layout, k)) choices.push_back({layout, k});
    }
  }
  return choices;
}

TEST(FprGolden, AllRowsWithinAMillionth) {
  int rows = 0;
  for (const GoldenFpr& golden : kGoldenFpr) {
    const std::string layout = golden.layout;
    double fpr = kNaN;
    if (layout == "classic") {
      fpr = ClassicFpr(1.0, golden.per_key, golden.k);
    } else if (layout == "counting4_split") {
      fpr = PredictedFprAt(Layout::kCounting4, 8, golden.per_key);
    } else if (layout == "counting8_split") {
      fpr = PredictedFprAt(Layout::kCounting8, 8, golden.per_key);
    } else {
      const Result<LayoutChoice> choice = TryParseLayout(layout);
      ASSERT_TRUE(choice.ok()) << layout;
      fpr = PredictedFprAt(choice->layout, golden.k, golden.per_key);
    }
    // The goldens have 11 digits.
    EXPECT_NEAR(fpr / golden.fpr, 1.0, 1e-9) << layout << " k=" << golden.k << " at " << golden.per_key;
    ++rows;
  }
  EXPECT_EQ(rows, 210);
}

TEST(FprGolden, ClassicExact) {
  for (const GoldenClassicExact& golden : kGoldenClassicExact) {
    EXPECT_NEAR(ClassicFprExact(golden.n, golden.m, golden.k) / golden.exact, 1.0, 1e-10) << golden.m;
    EXPECT_NEAR(ClassicFpr(static_cast<double>(golden.n), static_cast<double>(golden.m), golden.k) / golden.closed_form,
                1.0, 1e-10);
  }
}

// Another road to the same number: the distribution of the m bins themselves, key by key.
double ClassicByOccupancy(uint64_t n, uint64_t m, int k) {
  detail::OccupancyChain chain(static_cast<int>(m), k, 1.0);
  for (uint64_t key = 0; key < n; ++key) chain.AddKey();
  return chain.Expect(detail::OccupancyChain::Powers(static_cast<int>(m), k));
}

TEST(ClassicExact, AllMethodsAgreeWithTheOccupancyOfTheBins) {
  struct Case {
    uint64_t n, m;
    int k;
  };
  // Ball by ball; by squaring (n·k² above 2e6); by cumulants (the last two).
  for (const Case& c : {Case{3, 2, 2}, Case{1, 64, 255}, Case{5, 100, 255}, Case{11, 4096, 255}, Case{40, 300, 30},
                        Case{2000, 4096, 40}, Case{80, 20000, 200}, Case{20000, 200000, 3}, Case{60000, 100000, 2}}) {
    EXPECT_NEAR(ClassicFprExact(c.n, c.m, c.k) / ClassicByOccupancy(c.n, c.m, c.k), 1.0, 2e-9)
        << c.n << " " << c.m << " " << c.k;
  }
}

TEST(ClassicExact, EdgesAndLimit) {
  EXPECT_EQ(ClassicFprExact(0, 100, 3), 0.0);
  EXPECT_EQ(ClassicFprExact(5, 1, 3), 1.0);
  EXPECT_EQ(ClassicFprExact(uint64_t{1} << 62, 64, 16), 1.0);
  EXPECT_TRUE(std::isnan(ClassicFprExact(5, 10, 0)));
  // Large m: the closed form's limit.
  EXPECT_NEAR(ClassicFprExact(1'000'000'000'000, 10'000'000'000'000, 7) / ClassicFpr(1e12, 1e13, 7), 1.0, 1e-10);
}

TEST(Classic, SizingFormulas) {
  // 59.9 GB, not 350 MB.
  EXPECT_NEAR(ClassicBits(1e10, 1e-10) / 8e9, 59.9, 0.05);
  EXPECT_EQ(ClassicBits(1e6, 0.01), 9585059.0);
  EXPECT_EQ(ClassicHashCount(1e6, 9585059.0), 7);
  EXPECT_EQ(ClassicHashCount(1e6, 1.0), 1);
  EXPECT_EQ(ClassicBits(100, 1.0), 0.0);
  EXPECT_EQ(ClassicBits(100, 0.0), kInfinity);
  EXPECT_TRUE(std::isnan(ClassicBits(kNaN, 0.1)));
  EXPECT_EQ(ClassicHashCount(kNaN, 3), 1);
  EXPECT_EQ(ClassicHashCount(0, 3), std::numeric_limits<int>::max());
  EXPECT_EQ(ClassicFpr(0, 10, 3), 0.0);
  EXPECT_EQ(ClassicFpr(1e300, 10, 3), 1.0);
  EXPECT_TRUE(std::isnan(ClassicFpr(kNaN, 10, 3)));
}

// One block: all n keys are in it, whatever n.
TEST(PredictedFpr, OneBlockHoldsAllKeys) {
  for (const uint64_t n : {uint64_t{1}, uint64_t{17}, uint64_t{500}, uint64_t{100000}, uint64_t{1} << 60}) {
    const double keys = static_cast<double>(n);
    EXPECT_NEAR(PredictedFpr(Layout::kSplit512, 8, 1, n), std::pow(1.0 - std::pow(63.0 / 64, keys), 8), 1e-13);
    EXPECT_NEAR(PredictedFpr(Layout::kSplit256, 8, 1, n), std::pow(1.0 - std::pow(31.0 / 32, keys), 8), 1e-13);
    EXPECT_NEAR(PredictedFpr(Layout::kLine512, 1, 1, n), 1.0 - std::pow(511.0 / 512, keys), 1e-13);
    EXPECT_NEAR(PredictedFpr(Layout::kSector512z1, 1, 1, n), 1.0 - std::pow(511.0 / 512, keys), 1e-13);
  }
  // line512 in one block is the classic filter of 512 bits.
  EXPECT_NEAR(PredictedFpr(Layout::kLine512, 7, 1, 50) / ClassicFprExact(50, 512, 7), 1.0, 1e-11);
  // word64: the probe chooses one of 8 words, which holds Binomial(n, 1/8) keys.
  double word64 = 0.0;
  for (uint64_t j = 0; j <= 30; ++j) {
    const double x = static_cast<double>(j);
    word64 += std::exp(std::lgamma(31.0) - std::lgamma(x + 1) - std::lgamma(31.0 - x) + x * std::log(1.0 / 8) +
                       (30.0 - x) * std::log(7.0 / 8)) *
              ClassicFprExact(j, 64, 5);
  }
  EXPECT_NEAR(PredictedFpr(Layout::kWord64, 5, 1, 30) / word64, 1.0, 1e-11);
}

TEST(PredictedFpr, FewBlocksAreBinomial) {
  // Two blocks: the sum over the split of 20 keys, by hand.
  double sum = 0.0;
  double choose = 1.0;
  for (int i = 0; i <= 20; ++i) {
    sum += choose / std::pow(2.0, 20) * std::pow(1.0 - std::pow(63.0 / 64, i), 8);
    choose = choose * (20 - i) / (i + 1);
  }
  EXPECT_NEAR(PredictedFpr(Layout::kSplit512, 8, 2, 20) / sum, 1.0, 1e-11);
}

TEST(PredictedFpr, ManyBlocksApproachTheLimit) {
  for (const LayoutChoice& choice : EveryChoice()) {
    const uint64_t n = uint64_t{1} << 40;
    const uint64_t blocks = n / static_cast<uint64_t>(BlockBits(choice.layout)) / 1024 * 1024;
    const double limit = PredictedFprAt(
        choice.layout, choice.k,
        static_cast<double>(BlockBits(choice.layout)) * static_cast<double>(blocks) / static_cast<double>(n));
    EXPECT_NEAR(PredictedFpr(choice.layout, choice.k, blocks, n) / limit, 1.0, 1e-7)
        << LayoutNameWithK(choice.layout, choice.k);
  }
}

TEST(PredictedFpr, MonotoneAndWithinZeroAndOne) {
  for (const LayoutChoice& choice : EveryChoice()) {
    const std::string name = LayoutNameWithK(choice.layout, choice.k);
    double before = 0.0;
    for (double n = 1; n < 1e18; n *= 1.7) {
      const double fpr = PredictedFpr(choice.layout, choice.k, 1000, static_cast<uint64_t>(n));
      EXPECT_GE(fpr, before * (1 - 1e-12)) << name << " n=" << n;
      EXPECT_GT(fpr, 0.0) << name;
      EXPECT_LE(fpr, 1.0) << name;
      before = fpr;
    }
    EXPECT_EQ(before, 1.0) << name;
    before = 1.0;
    for (double bits_per_key = 1e-9; bits_per_key < 1e9; bits_per_key *= 1.3) {
      const double fpr = PredictedFprAt(choice.layout, choice.k, bits_per_key);
      EXPECT_LE(fpr, before * (1 + 1e-12)) << name << " at " << bits_per_key;
      EXPECT_GT(fpr, 0.0) << name;
      before = fpr;
    }
  }
}

TEST(PredictedFpr, Edges) {
  EXPECT_EQ(PredictedFpr(Layout::kSplit512, 8, 100, 0), 0.0);
  EXPECT_EQ(PredictedFpr(Layout::kSplit512, 8, 0, 5), 1.0);
  EXPECT_EQ(PredictedFpr(Layout::kSplit512, 8, 1, std::numeric_limits<uint64_t>::max()), 1.0);
  EXPECT_EQ(PredictedFprAt(Layout::kSplit512, 8, 0.0), 1.0);
  EXPECT_EQ(PredictedFprAt(Layout::kSplit512, 8, kInfinity), 0.0);
  EXPECT_TRUE(std::isnan(PredictedFprAt(Layout::kSplit512, 8, kNaN)));
  EXPECT_TRUE(std::isnan(PredictedFprAt(Layout::kSplit512, 7, 10.0)));
  EXPECT_TRUE(std::isnan(PredictedFpr(Layout::kAuto, 8, 10, 10)));
  // One key in 2^32 blocks: only the block that has it can answer maybe.
  EXPECT_NEAR(PredictedFpr(Layout::kSplit512, 8, uint64_t{1} << 32, 1) * std::pow(2.0, 80), 1.0, 1e-12);
  EXPECT_EQ(HashFloor(std::pow(2.0, 40)), std::pow(2.0, -24));
}

TEST(PredictedFpr, ColdTablesFromManyThreads) {
  // A counting shape that no other test touches, so that the threads race to fill it.
  const detail::BlockShape shape{4, 2, 48, 3};
  std::vector<double> answers(8);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < answers.size(); ++t) {
    threads.emplace_back([&, t] { answers[t] = detail::FprAtLoad(detail::BlockRates::Of(shape), 60.0); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const double answer : answers) EXPECT_EQ(answer, answers[0]);
  EXPECT_GT(answers[0], 0.0);
}

TEST(Inverse, BlocksForFprIsTheFewest) {
  for (const LayoutChoice& choice : EveryChoice()) {
    for (const uint64_t n :
         {uint64_t{1}, uint64_t{2}, uint64_t{37}, uint64_t{500}, uint64_t{218793}, uint64_t{50'000'000}}) {
      for (const double fpr : {0.99, 0.5, 0.1, 1e-2, 1e-4, 1e-7}) {
        const uint64_t blocks = BlocksForFpr(choice.layout, choice.k, n, fpr);
        const std::string what =
            LayoutNameWithK(choice.layout, choice.k) + " n=" + std::to_string(n) + " fpr=" + std::to_string(fpr);
        if (blocks == 0) {
          const uint64_t most = choice.layout == Layout::kSplit256 ? uint64_t{1} << 26 : (uint64_t{1} << 32) - 1;
          EXPECT_GT(PredictedFpr(choice.layout, choice.k, most, n), fpr) << what;
          continue;
        }
        EXPECT_LE(PredictedFpr(choice.layout, choice.k, blocks, n), fpr) << what;
        if (blocks > 1) {
          EXPECT_GT(PredictedFpr(choice.layout, choice.k, blocks - 1, n), fpr) << what;
        }
      }
    }
  }
  EXPECT_EQ(BlocksForFpr(Layout::kSplit512, 8, uint64_t{1} << 40, 1e-6), 0u);
  EXPECT_EQ(BlocksForFpr(Layout::kSplit512, 8, 10, kNaN), 0u);
  EXPECT_EQ(BlocksForFpr(Layout::kSplit512, 8, 10, 0.0), 0u);
  EXPECT_EQ(BlocksForFpr(Layout::kSplit512, 8, 10, 1.0), 1u);
}

TEST(Inverse, BitsPerKeyRoundTrip) {
  for (const LayoutChoice& choice : EveryChoice()) {
    for (const double fpr : {0.9, 0.3, 1e-2, 1e-4}) {
      const double bits_per_key = BitsPerKeyForFpr(choice.layout, choice.k, fpr);
      ASSERT_TRUE(std::isfinite(bits_per_key)) << LayoutNameWithK(choice.layout, choice.k);
      EXPECT_NEAR(PredictedFprAt(choice.layout, choice.k, bits_per_key) / fpr, 1.0, 1e-9);
    }
  }
  EXPECT_EQ(BitsPerKeyForFpr(Layout::kSplit256, 8, 1e-30), kInfinity);
  EXPECT_EQ(BitsPerKeyForFpr(Layout::kSplit256, 8, 0.0), kInfinity);
  EXPECT_EQ(BitsPerKeyForFpr(Layout::kSplit256, 8, 1.0), 0.0);
  EXPECT_TRUE(std::isnan(BitsPerKeyForFpr(Layout::kSplit256, 8, kNaN)));
}

TEST(Inverse, BestHashCount) {
  EXPECT_EQ(BestHashCount(Layout::kWord64, 10.0), 5);
  EXPECT_EQ(BestHashCount(Layout::kSector512z2, 10.0), 6);
  EXPECT_EQ(BestHashCount(Layout::kSector512z8, 10.0), 8);
  EXPECT_EQ(BestHashCount(Layout::kLine512, 20.0), 11);
  EXPECT_EQ(BestHashCount(Layout::kSplit256, 20.0), 8);
  EXPECT_EQ(BestHashCount(Layout::kAuto, 20.0), 0);
}

}  // namespace
}  // namespace bloomline
