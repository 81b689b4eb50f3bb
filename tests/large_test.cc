// Runs that take minutes or gigabytes: ctest --test-dir build -L large.
#include <gtest/gtest.h>

#include <charconv>
#include <string>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/fpr_model.h"
#include "bloomline/target.h"
#include "tests/test_util.h"

namespace bloomline {
namespace {

using test::LayoutAndK;

constexpr double kSigmas = 5;
constexpr LayoutAndK kShapes[] = {{Layout::kSplit512, 8},    {Layout::kWord64, 5},       {Layout::kSector512z2, 6},
                                  {Layout::kSector512z4, 8}, {Layout::kSector512z8, 16}, {Layout::kLine512, 7},
                                  {Layout::kLine512, 16},    {Layout::kSplit256, 8}};

// The measured rate of `probes` foreign keys, numbered from n on, against the model of n keys.
void ExpectRate(uint64_t maybe, uint64_t probes, double model, double content, const std::string& what) {
  const double rate = static_cast<double>(maybe) / static_cast<double>(probes);
  const double deviation = test::RateDeviation(model, static_cast<double>(probes), content);
  EXPECT_NEAR(rate, model, kSigmas * deviation) << what << ": " << (rate - model) / deviation << " deviations";
}

TEST(LargeFpr, TenBitsPerKeyAndTenMillionKeys) {
  constexpr uint64_t kKeys = 10'000'000, kProbes = 10'000'000;
  for (const LayoutAndK& shape : kShapes) {
    Filter filter(FilterConfig::ForBitsPerKey(kKeys, 10, shape.layout, shape.k));
    test::InsertMany(filter, kKeys, test::RandomKey);
    const uint64_t maybe = test::CountMaybe(filter, kKeys, kProbes, test::RandomKey);
    if (shape.layout == Layout::kSplit512 && shape.k == 8) {
      EXPECT_NEAR(filter.PredictedFpr(), 0.010490, 1e-6);
    }
    ExpectRate(maybe, kProbes, filter.PredictedFpr(),
               ContentRelativeDeviation(shape.layout, shape.k, filter.blocks(), kKeys), shape.Name());
    ExpectRate(maybe, kProbes, filter.MeasuredFillFpr(), 0, shape.Name() + " against the fill");
  }
}

// At constant bits per key the rate stays what it is, however many keys there are.
TEST(LargeFpr, DoesNotRiseWithTheNumberOfKeys) {
  const auto sequential = [](uint64_t i) { return i; };
  for (const LayoutAndK& shape : {LayoutAndK{Layout::kSplit512, 8}, LayoutAndK{Layout::kWord64, 5},
                                  LayoutAndK{Layout::kLine512, 7}, LayoutAndK{Layout::kSplit256, 8}}) {
    for (uint64_t n = 10'000; n <= 500'000'000; n *= n == 100'000'000 ? 5 : 10) {
      if (n > 100'000'000 && shape.k != 8) continue;
      Filter filter(FilterConfig::ForBitsPerKey(n, 10, shape.layout, shape.k));
      test::InsertMany(filter, n, sequential);
      const uint64_t probes = 10'000'000;
      ExpectRate(test::CountMaybe(filter, n, probes, sequential), probes, filter.PredictedFpr(),
                 ContentRelativeDeviation(shape.layout, shape.k, filter.blocks(), n),
                 shape.Name() + ", " + std::to_string(n) + " keys");
    }
  }
}

// Hash bits that choose the block must not choose bits inside it. In a filter of many blocks that shows as a rate above
// the model's; a band of 2^16 neighbouring blocks is as good as all of them, and the rest is never touched.
TEST(LargeBand, NoCorrelationBetweenBlockAndBits) {
  constexpr uint64_t kBand = 1 << 16;
  for (const LayoutAndK& shape : kShapes) {
    std::vector<uint64_t> sizes = {uint64_t{1} << 26};
    if (shape.layout != Layout::kSplit256) {
      for (const uint64_t blocks :
           {uint64_t{1} << 27, (uint64_t{1} << 28) + 12345, uint64_t{1} << 30, (uint64_t{1} << 32) - 1}) {
        sizes.push_back(blocks);
      }
    }
    for (const uint64_t blocks : sizes) {
      MemoryPolicy lazy;
      lazy.lazy = true;
      lazy.pages = Pages::kDefault;
      Result<Filter> made = Filter::Create(test::SmallConfig(shape.layout, shape.k, blocks).WithMemory(lazy));
      ASSERT_TRUE(made.ok()) << made.error().what();
      Filter filter = std::move(made).value();
      ASSERT_EQ(filter.blocks(), blocks);
      for (const uint64_t first : {uint64_t{0}, blocks / 3, blocks - kBand}) {
        // Hashes spread evenly over those of the band's blocks.
        const auto edge = [&](uint64_t block) {
          const test::Wide scaled = (test::Wide{block} << 64) + blocks - 1;
          return scaled / blocks;
        };
        const auto low = static_cast<uint64_t>(edge(first));
        const auto width = static_cast<uint64_t>(edge(first + kBand) - low);
        const auto hash_of = [&](uint64_t i) {
          return low + static_cast<uint64_t>((test::Wide{test::RandomKey(i)} * width) >> 64);
        };
        const uint64_t n = kBand * static_cast<uint64_t>(BlockBits(shape.layout)) / 10, probes = 3 * n;
        test::InsertMany(filter, n, hash_of, true);
        ASSERT_EQ(test::CountMaybe(filter, 0, n, hash_of, true), n) << "false negatives";
        // Blocks outside of the band hold nothing.
        const size_t per_block = static_cast<size_t>(BlockBits(shape.layout)) / 64;
        for (const uint64_t beside : {first + kBand, first - 1}) {
          for (size_t i = 0; beside < blocks && i < per_block; ++i) {
            ASSERT_EQ(filter.words()[beside * per_block + i], 0u) << "block " << beside;
          }
        }
        ExpectRate(test::CountMaybe(filter, n, probes, hash_of, true), probes,
                   PredictedFpr(shape.layout, shape.k, kBand, n),
                   ContentRelativeDeviation(shape.layout, shape.k, kBand, n),
                   shape.Name() + " of " + std::to_string(blocks) + " blocks, band at " + std::to_string(first));
      }
    }
  }
}

// ---- No false negatives: 10^8 keys of each kind in a split512 filter on the best target, 10^7 in the other layouts,
// and 10^6 in each on every other target.
class LargeNoFalseNegatives : public ::testing::TestWithParam<std::string> {
 protected:
  static uint64_t CountFor(LayoutAndK shape) {
    if (GetParam() != SupportedTargets().front()) return 1'000'000;
    return shape.layout == Layout::kSplit512 && shape.k == 8 ? 100'000'000 : 10'000'000;
  }
  static Filter Make(LayoutAndK shape) {
    return Filter(FilterConfig::ForBitsPerKey(CountFor(shape), 10, shape.layout, shape.k).WithTarget(GetParam()));
  }
  // In batches; then a part of the keys one by one.
  template <class KeyOf>
  static void Check(LayoutAndK shape, KeyOf key_of) {
    const uint64_t count = CountFor(shape);
    Filter filter = Make(shape);
    ASSERT_EQ(filter.target(), GetParam());
    test::InsertMany(filter, count, key_of);
    EXPECT_EQ(test::CountMaybe(filter, 0, count, key_of), count) << shape.Name();
    for (uint64_t i = 0; i < count; i += 97) ASSERT_TRUE(filter.MayContain(key_of(i))) << shape.Name() << " " << i;
    ASSERT_EQ(filter.InsertedCount(), count);
  }
};

TEST_P(LargeNoFalseNegatives, Random) {
  for (const LayoutAndK& shape : kShapes) Check(shape, test::RandomKey);
}

TEST_P(LargeNoFalseNegatives, Sequential) {
  for (const LayoutAndK& shape : kShapes) Check(shape, [](uint64_t i) { return i; });
}

TEST_P(LargeNoFalseNegatives, Strings) {
  constexpr size_t kBatch = 4096, kWidth = 28;
  std::string bytes(kBatch * kWidth, '\0');
  std::vector<std::string_view> keys(kBatch);
  std::vector<uint64_t> bitmap(kBatch / 64);
  // "user:" and the number, followed by up to 3 more bytes, so that lengths vary.
  const auto make = [&](uint64_t first, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      char* at = bytes.data() + i * kWidth;
      char* end = at + 5;
      std::copy_n("user:", 5, at);
      end = std::to_chars(end, at + kWidth - 3, first + i).ptr;
      for (uint64_t more = (first + i) % 4; more > 0; --more) *end++ = '/';
      keys[i] = {at, static_cast<size_t>(end - at)};
    }
    return std::span<const std::string_view>(keys).first(count);
  };
  for (const LayoutAndK& shape : {LayoutAndK{Layout::kSplit512, 8}, LayoutAndK{Layout::kLine512, 7}}) {
    Filter filter = Make(shape);
    const uint64_t count = CountFor(shape);
    for (uint64_t i = 0; i < count; i += kBatch) {
      filter.InsertBatch(make(i, std::min<uint64_t>(kBatch, count - i)));
    }
    uint64_t maybe = 0;
    for (uint64_t i = 0; i < count; i += kBatch) {
      const auto batch = make(i, std::min<uint64_t>(kBatch, count - i));
      filter.MayContainBatch(batch, bitmap);
      for (size_t word = 0; word < test::BitmapWords(batch.size()); ++word) {
        maybe += static_cast<uint64_t>(std::popcount(bitmap[word]));
      }
      ASSERT_TRUE(filter.MayContain(batch[i / kBatch % batch.size()]));
    }
    EXPECT_EQ(maybe, count) << shape.Name();
  }
}

INSTANTIATE_TEST_SUITE_P(AllTargets, LargeNoFalseNegatives, ::testing::ValuesIn(SupportedTargets()),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace bloomline
