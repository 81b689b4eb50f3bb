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
    {Layout::kSector512z1, 1, 0xd898ea4c294fbdfa},
    {Layout::kSector512z1, 2, 0xb5b188ada74bebf7},
    {Layout::kSector512z1, 3, 0x6256d937e156c78c},
    {Layout::kSector512z1, 4, 0xb9b10359fb440a31},
    {Layout::kSector512z1, 5, 0xedf5dfad55893142},
    {Layout::kSector512z1, 6, 0xe36ecc15a57b4fd6},
    {Layout::kSector512z1, 7, 0x0e05f27351085c32},
    {Layout::kSector512z1, 8, 0x1a3c91c1b6fb8d83},
    {Layout::kSector512z1, 9, 0x96b8a6aac7058d88},
    {Layout::kSector512z1, 10, 0xc34fa3c4a4116cc7},
    {Layout::kSector512z1, 11, 0x2f75921ef5479dcc},
    {Layout::kSector512z1, 12, 0x95c29b1256e2357c},
    {Layout::kSector512z1, 13, 0xaf221f807bba51ab},
    {Layout::kSector512z1, 14, 0x9a91c6bdb518b4e3},
    {Layout::kSector512z1, 15, 0x3b27369f7fe21983},
    {Layout::kSector512z1, 16, 0x2e68460936569b90},
    {Layout::kSector512z2, 2, 0x31b2c802616a015d},
    {Layout::kSector512z2, 4, 0x333c0cce41b000ca},
    {Layout::kSector512z2, 6, 0xf16c0335ca67d62b},
    {Layout::kSector512z2, 8, 0x08439b386364f65b},
    {Layout::kSector512z2, 10, 0x4ae9227527c6cac9},
    {Layout::kSector512z2, 12, 0xf82f41dc34ed88e0},
    {Layout::kSector512z2, 14, 0xb97174cf700738e6},
    {Layout::kSector512z2, 16, 0xa1a4b81c9e26718e},
    {Layout::kSector512z4, 4, 0x04b43dff74078c24},
    {Layout::kSector512z4, 8, 0x77915ddf41999e74},
    {Layout::kSector512z4, 12, 0x206b815caa317e79},
    {Layout::kSector512z4, 16, 0xa2f32a35696dd403},
    {Layout::kSector512z8, 8, 0x492a725b338814b8},
    {Layout::kSector512z8, 16, 0x72c0110f9e0897dd},
    {Layout::kLine512, 1, 0xd898ea4c294fbdfa},
    {Layout::kLine512, 2, 0xf53230e0e6a14d7a},
    {Layout::kLine512, 3, 0x5d54de26563ec652},
    {Layout::kLine512, 4, 0x0ec5f92f53bbb86c},
    {Layout::kLine512, 5, 0x18af955375667a2a},
    {Layout::kLine512, 6, 0x57bd9b03a5ca655f},
    {Layout::kLine512, 7, 0xc1131aaec89a8779},
    {Layout::kLine512, 8, 0x90e39a2e35dc175a},
    {Layout::kLine512, 9, 0xbc83f29a75a99b58},
    {Layout::kLine512, 10, 0x28175a0a01663518},
    {Layout::kLine512, 11, 0x22698970e2a6bb8a},
    {Layout::kLine512, 12, 0xd4f682f964be2cde},
    {Layout::kLine512, 13, 0xb93f06ae10966a30},
    {Layout::kLine512, 14, 0xbd5d6620cc0be92d},
    {Layout::kLine512, 15, 0xe2896d4c84fe2750},
    {Layout::kLine512, 16, 0xda37de55c40798ae},
    {Layout::kSplit256, 8, 0x046b53513a9ab388},
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
    case Path::kBatch: filter.InsertBatch(keys); break;
    case Path::kTryBatch: filter.TryInsertBatch(keys, changed); break;
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
    case Path::kBatch: filter.InsertHashBatch(hashes); break;
    case Path::kTryBatch: filter.TryInsertHashBatch(hashes, changed); break;
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
      ExpectContent(of_u64, {0x5000010000000001, 0x0010080000800801, 0x0200008200000005, 0x0400000800002041},
                    0x4200000000004000, 0x492a725b338814b8);
      InsertAll(of_u32, u32, path);
      ExpectContent(of_u32, {0x0000000088008004, 0x0800000000482000, 0x2400000000900000, 0x1000000008800400},
                    0x8008100000000000, 0x7d5897b872678690);
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
