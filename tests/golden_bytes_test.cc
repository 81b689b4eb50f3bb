// The bits that a set of keys leaves in a filter are part of the file format. Pinned for every layout and k, and once
// per kind of key; computed in Python's unbounded integers from the design's text (byte strings hashed by libxxhash),
// without the library. A change here makes every stored filter unreadable: it needs a new format version.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/target.h"
#include "tests/test_util.h"

namespace bloomline {
namespace {

constexpr uint64_t kBlocks = 211;
constexpr uint64_t kSeed = 42;

// FNV-1a of the words' bytes after the u64 keys 0 … 999.
struct Golden {
  Layout layout;
  int k;
  uint64_t checksum;
};
constexpr Golden kGolden[] = {
    {Layout::kSector512z1, 1, 0x74eabb6373acc06e},  {Layout::kSector512z1, 2, 0x0db697fc1393c470},
    {Layout::kSector512z1, 3, 0xeb45ca638994d027},  {Layout::kSector512z1, 4, 0x9512231567d4c801},
    {Layout::kSector512z1, 5, 0xf5d34c94a0c23f2b},  {Layout::kSector512z1, 6, 0x42b9c58980089ded},
    {Layout::kSector512z1, 7, 0x16cfb1936cad3d60},  {Layout::kSector512z1, 8, 0xcb05fa114f3f3637},
    {Layout::kSector512z1, 9, 0xd2e2502d14ffbfbb},  {Layout::kSector512z1, 10, 0xb6344824042883e2},
    {Layout::kSector512z1, 11, 0x011ca9395e74ca72}, {Layout::kSector512z1, 12, 0x0e83f7190bb10911},
    {Layout::kSector512z1, 13, 0x5c5ba1ad483c57c9}, {Layout::kSector512z1, 14, 0x84af8c08d54e986b},
    {Layout::kSector512z1, 15, 0x90bf6c06fef29fb9}, {Layout::kSector512z1, 16, 0x3c3633dabb74eac2},
    {Layout::kSector512z2, 2, 0x6f89960ec08e721d},  {Layout::kSector512z2, 4, 0xac7d38ed6ba6f569},
    {Layout::kSector512z2, 6, 0xd6e19ef3aac41a45},  {Layout::kSector512z2, 8, 0xb48d198459c315ff},
    {Layout::kSector512z2, 10, 0x65b51c4cb6bb2d44}, {Layout::kSector512z2, 12, 0xe2478bb097f8347b},
    {Layout::kSector512z2, 14, 0x14e863f47f67f1f5}, {Layout::kSector512z2, 16, 0x77d9fa47af2a5885},
    {Layout::kSector512z4, 4, 0x7c91e9636ddcbf75},  {Layout::kSector512z4, 8, 0x13e453eaae5b2721},
    {Layout::kSector512z4, 12, 0xf731bf86a8e3cf04}, {Layout::kSector512z4, 16, 0xb1e2b10c59f477cb},
    {Layout::kSector512z8, 8, 0x90c57f695bf37379},  {Layout::kSector512z8, 16, 0x810e99787c0975fa},
    {Layout::kLine512, 1, 0x74eabb6373acc06e},      {Layout::kLine512, 2, 0x6828b382e3b71514},
    {Layout::kLine512, 3, 0xbe8e61b79a3ee979},      {Layout::kLine512, 4, 0x80d97140d6745230},
    {Layout::kLine512, 5, 0x01651f805c283421},      {Layout::kLine512, 6, 0x166861a5049cba3c},
    {Layout::kLine512, 7, 0x9be497bea9f03301},      {Layout::kLine512, 8, 0x2c0b041bcc95bc1b},
    {Layout::kLine512, 9, 0x99116a78a278536a},      {Layout::kLine512, 10, 0x7723478a6bc5dd50},
    {Layout::kLine512, 11, 0xdccfdc5a04c0e848},     {Layout::kLine512, 12, 0x6e205aba889fc7bc},
    {Layout::kLine512, 13, 0xba88c596fee8ca4d},     {Layout::kLine512, 14, 0x19b790682ef3f41c},
    {Layout::kLine512, 15, 0xedfc013b184771d3},     {Layout::kLine512, 16, 0x785fb355563e2733},
    {Layout::kSplit256, 8, 0x82a88c5c9da51f5d},
};

// How the keys come in must not matter.
enum class Path { kSingle, kTry, kBatch, kTryBatch };
constexpr Path kPaths[] = {Path::kSingle, Path::kTry, Path::kBatch, Path::kTryBatch};

template <class Keys>
void InsertAll(Filter& filter, const Keys& keys, Path path) {
  std::vector<uint64_t> changed(test::BitmapWords(keys.size()));
  switch (path) {
    case Path::kSingle:
      for (const auto& key : keys) filter.Insert(key);
      break;
    case Path::kTry:
      for (const auto& key : keys) (void)filter.TryInsert(key);
      break;
    case Path::kBatch:
      filter.InsertBatch(keys);
      break;
    case Path::kTryBatch:
      filter.TryInsertBatch(keys, changed);
      break;
  }
}

void InsertHashes(Filter& filter, const std::vector<uint64_t>& hashes, Path path) {
  std::vector<uint64_t> changed(test::BitmapWords(hashes.size()));
  switch (path) {
    case Path::kSingle:
      for (const uint64_t hash : hashes) filter.InsertHash(hash);
      break;
    case Path::kTry:
      for (const uint64_t hash : hashes) (void)filter.TryInsertHash(hash);
      break;
    case Path::kBatch:
      filter.InsertHashBatch(hashes);
      break;
    case Path::kTryBatch:
      filter.TryInsertHashBatch(hashes, changed);
      break;
  }
}

TEST(GoldenBytes, EveryLayout) {
  std::vector<uint64_t> keys(1000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  ASSERT_EQ(std::size(kGolden), test::AllLayouts().size());
  for (const std::string& target : SupportedTargets()) {
    for (const Golden& golden : kGolden) {
      for (const Path path : kPaths) {
        Filter filter(test::SmallConfig(golden.layout, golden.k, kBlocks, target, kSeed));
        ASSERT_EQ(filter.blocks(), kBlocks);
        InsertAll(filter, keys, path);
        EXPECT_EQ(test::Fnv1a(filter.words()), golden.checksum)
            << target << " " << LayoutNameWithK(golden.layout, golden.k) << " path " << static_cast<int>(path);
      }
    }
  }
}

// The slow reading in test_util.h, too, so that a failure above can be told from one here.
TEST(GoldenBytes, SlowReading) {
  for (const Golden& golden : kGolden) {
    test::slow::Filter filter(golden.layout, golden.k, kBlocks);
    for (uint64_t key = 0; key < 1000; ++key) filter.Insert(HashInteger(key, kSeed));
    EXPECT_EQ(test::Fnv1a(filter.words()), golden.checksum) << LayoutNameWithK(golden.layout, golden.k);
  }
}

// First words, last word and checksum of a split512 filter of 1000 keys.
void ExpectContent(const Filter& filter, std::initializer_list<uint64_t> first, uint64_t last, uint64_t checksum) {
  const std::span<const uint64_t> words = filter.words();
  ASSERT_EQ(words.size(), kBlocks * 8);
  size_t i = 0;
  for (const uint64_t word : first) EXPECT_EQ(words[i++], word) << filter.target() << " word " << i - 1;
  EXPECT_EQ(words.back(), last) << filter.target();
  EXPECT_EQ(test::Fnv1a(words), checksum) << filter.target();
}

TEST(GoldenBytes, EveryKindOfKey) {
  std::vector<uint64_t> u64(1000), hashes(1000);
  std::vector<uint32_t> u32(1000);
  std::vector<std::string> strings(1000);  // the last one stays empty
  std::vector<std::string_view> views(1000);
  std::string bytes;
  std::vector<int32_t> offsets = {0};
  for (size_t i = 0; i < 1000; ++i) {
    u64[i] = i;
    u32[i] = 4294966296u + static_cast<uint32_t>(i);
    hashes[i] = (i * 0x9e3779b97f4a7c15) ^ (i << 7);
    if (i < 999) strings[i] = "key-" + std::to_string(i);
    views[i] = strings[i];
    bytes += strings[i];
    offsets.push_back(static_cast<int32_t>(bytes.size()));
  }
  hashes[998] = 0;
  hashes[999] = ~uint64_t{0};

  for (const std::string& target : SupportedTargets()) {
    const FilterConfig config = test::SmallConfig(Layout::kSplit512, 8, kBlocks, target, kSeed);
    const auto expect_strings = [](const Filter& filter) {
      ExpectContent(filter, {0x0000c0000a008002, 0x0000009010030002, 0x0000004220088002, 0x2000030120001000},
                    0x0000448100000000, 0xacc2a6d679645259);
    };
    for (const Path path : kPaths) {
      SCOPED_TRACE(target + " path " + std::to_string(static_cast<int>(path)));
      Filter of_u64(config), of_u32(config), of_hashes(config), of_views(config);
      InsertAll(of_u64, u64, path);
      ExpectContent(of_u64, {0x0000100040810000, 0x4000402002000000, 0x1000010040000010, 0x0100000400000102},
                    0x0040020000001020, 0x90c57f695bf37379);
      InsertAll(of_u32, u32, path);
      ExpectContent(of_u32, {0x00000000280000c0, 0x0000000040000103, 0x0000020010804000, 0x0c08000010000000},
                    0x0800010040000000, 0x528ff518e84ef2dd);
      InsertHashes(of_hashes, hashes, path);
      ExpectContent(of_hashes, {0x0000010000024081, 0x0800020008002001, 0x0400001100000101, 0x0000808004080001},
                    0x00a0002040009000, 0x3b4343e7d38cd6b2);
      InsertAll(of_views, views, path);
      expect_strings(of_views);
    }
    Filter of_strings(config), of_column(config), by_one(config);
    of_strings.InsertBatch(strings);
    expect_strings(of_strings);
    of_column.InsertBatch(BinaryColumn(offsets, bytes));
    expect_strings(of_column);
    for (const std::string& string : strings) by_one.Insert(string);
    expect_strings(by_one);
  }
}

}  // namespace
}  // namespace bloomline
