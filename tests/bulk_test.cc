// InsertBulk: the same filter as InsertBatch, whatever the sizes and however the hashes are spread.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "bloomline/filter.h"

namespace bloomline {
namespace {

// Enough blocks for parts: the smallest share of a filter that is partitioned at all is 2 MiB, eight parts at least.
constexpr uint64_t kBits = uint64_t{64} << 23;

std::vector<uint64_t> Keys(size_t count, uint64_t seed) {
  std::vector<uint64_t> keys(count);
  for (size_t i = 0; i < count; ++i) keys[i] = HashInteger(i, seed);
  return keys;
}

void ExpectSameAsBatch(Layout layout, int k, const std::vector<uint64_t>& keys, uint64_t scratch_bytes) {
  const FilterConfig config = FilterConfig::ForBits(kBits, k, layout).WithSeed(5);
  Filter batch(config);
  Filter bulk(config);
  batch.InsertBatch(keys);
  bulk.InsertBulk(keys, scratch_bytes);
  EXPECT_EQ(bulk.InsertedCount(), keys.size());
  EXPECT_TRUE(std::ranges::equal(batch.words(), bulk.words())) << LayoutNameWithK(layout, k) << " " << keys.size();
}

TEST(InsertBulk, IsInsertBatchForEveryFamily) {
  const std::vector<uint64_t> keys = Keys(1'500'007, 1);
  ExpectSameAsBatch(Layout::kSplit512, 8, keys, 0);
  ExpectSameAsBatch(Layout::kWord64, 5, keys, 0);
  ExpectSameAsBatch(Layout::kLine512, 7, keys, 0);
  ExpectSameAsBatch(Layout::kSplit256, 8, keys, 0);
}

TEST(InsertBulk, WithLittleScratchPartsFillUpAndStartAnew) {
  const std::vector<uint64_t> keys = Keys(2'000'001, 2);
  for (const uint64_t scratch : {uint64_t{1}, uint64_t{200'000}, uint64_t{1} << 20}) {
    ExpectSameAsBatch(Layout::kSplit512, 8, keys, scratch);
  }
}

TEST(InsertBulk, TakesFewKeysAndKeysThatAllFallIntoOnePart) {
  ExpectSameAsBatch(Layout::kSplit512, 8, {}, 0);
  ExpectSameAsBatch(Layout::kSplit512, 8, Keys(3, 3), 0);
  ExpectSameAsBatch(Layout::kSplit512, 8, std::vector<uint64_t>(700'000, 42), 0);
}

}  // namespace
}  // namespace bloomline
