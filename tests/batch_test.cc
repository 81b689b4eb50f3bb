// Filter's batch calls: every kind of key, lengths and outputs as the contract has them, on every target.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/target.h"
#include "tests/test_util.h"

namespace bloomline {
namespace {

using test::BitmapWords;
using test::BitOf;
using test::Guarded;
using test::LayoutAndK;
using test::Random;

// One of every shape of kernel; kernel_test goes through all k.
constexpr LayoutAndK kShapes[] = {{Layout::kSplit512, 8},    {Layout::kWord64, 5},  {Layout::kSector512z2, 6},
                                  {Layout::kSector512z4, 8}, {Layout::kLine512, 7}, {Layout::kSplit256, 8}};
constexpr size_t kMaxLength = 130;
constexpr uint64_t kRubbish = 0xa5a5a5a5a5a5a5a5;

class BatchTest : public ::testing::TestWithParam<std::string> {
 protected:
  // body(filter) for an empty filter of every shape on the target.
  template <class Body>
  void ForEachShape(uint64_t blocks, Body body) {
    for (const LayoutAndK& shape : kShapes) {
      SCOPED_TRACE(shape.Name());
      Filter filter(test::SmallConfig(shape.layout, shape.k, blocks, GetParam()));
      ASSERT_EQ(filter.target(), GetParam());
      ASSERT_EQ(filter.blocks(), blocks);
      body(filter);
      if (HasFatalFailure()) return;
    }
  }
};

// What a batch must say, from the one-by-one answers.
template <class Keys>
std::vector<bool> Answers(const Filter& filter, const Keys& keys) {
  std::vector<bool> answers;
  for (size_t i = 0; i < keys.size(); ++i) answers.push_back(filter.MayContain(keys[i]));
  return answers;
}

std::vector<uint32_t> Positions(const std::vector<bool>& answers) {
  std::vector<uint32_t> positions;
  for (uint32_t i = 0; i < answers.size(); ++i) {
    if (answers[i]) positions.push_back(i);
  }
  return positions;
}

bool BitmapIs(std::span<const uint64_t> bitmap, const std::vector<bool>& expected) {
  for (size_t i = 0; i < bitmap.size() * 64; ++i) {
    if (BitOf(bitmap, i) != (i < expected.size() && expected[i])) return false;
  }
  return true;
}

// Bitmaps and positions of exactly the contract's size before a guard page, nothing in front of them touched.
template <class Keys>
void ExpectBatchesAgree(const Filter& filter, const Keys& keys) {
  const std::vector<bool> expected = Answers(filter, keys);
  Guarded memory(4096);
  const std::span<uint64_t> bitmap = memory.TailOf<uint64_t>(BitmapWords(keys.size()));
  filter.MayContainBatch(keys, bitmap);
  ASSERT_TRUE(BitmapIs(bitmap, expected)) << keys.size() << " keys";
  ASSERT_TRUE(memory.CanaryIntact(bitmap.size_bytes())) << keys.size() << " keys";
}

template <class Keys>
void ExpectSelectAgrees(const Filter& filter, const Keys& keys) {
  const std::vector<uint32_t> expected = Positions(Answers(filter, keys));
  Guarded memory(4096);
  const std::span<uint32_t> positions = memory.TailOf<uint32_t>(keys.size());
  const size_t hits = filter.SelectBatch(keys, positions);
  ASSERT_EQ(std::vector<uint32_t>(positions.begin(), positions.begin() + static_cast<std::ptrdiff_t>(hits)), expected);
  ASSERT_TRUE(memory.CanaryIntact(positions.size_bytes())) << keys.size() << " keys";
}

TEST_P(BatchTest, IntegersOfEveryLength) {
  ForEachShape(29, [](Filter& filter) {
    Random random(1);
    std::vector<uint64_t> members = random.Take(200);
    filter.InsertBatch(members);
    for (uint32_t key = 0; key < 200; ++key) filter.Insert(key * 3);
    Guarded memory(4096);
    for (size_t length = 0; length <= kMaxLength; ++length) {
      const std::span<uint64_t> wide = memory.TailOf<uint64_t>(length);
      for (size_t i = 0; i < length; ++i) wide[i] = i % 2 ? members[random.Below(200)] : random.Next();
      ExpectBatchesAgree(filter, std::span<const uint64_t>(wide));
      ExpectSelectAgrees(filter, std::span<const uint64_t>(wide));
      std::vector<bool> by_hash;
      for (const uint64_t hash : wide) by_hash.push_back(filter.MayContainHash(hash));
      std::vector<uint64_t> bitmap(BitmapWords(length), kRubbish);
      filter.MayContainHashBatch(wide, bitmap);
      ASSERT_TRUE(BitmapIs(bitmap, by_hash)) << length;
      std::vector<uint32_t> positions(length);
      positions.resize(filter.SelectHashBatch(wide, positions));
      ASSERT_EQ(positions, Positions(by_hash));

      const std::span<uint32_t> narrow = memory.TailOf<uint32_t>(length);
      for (size_t i = 0; i < length; ++i) narrow[i] = static_cast<uint32_t>(i * 2);
      ExpectBatchesAgree(filter, std::span<const uint32_t>(narrow));
      ExpectSelectAgrees(filter, std::span<const uint32_t>(narrow));
    }
  });
}

// A u32 key is its u64 value.
TEST_P(BatchTest, NarrowKeysAreTheirWideValue) {
  ForEachShape(29, [](Filter& filter) {
    std::vector<uint32_t> narrow(300);
    std::iota(narrow.begin(), narrow.end(), 0xffffff00u);
    const std::vector<uint64_t> wide(narrow.begin(), narrow.end());
    Filter other = filter.Clone();
    filter.InsertBatch(narrow);
    other.InsertBatch(wide);
    ASSERT_TRUE(std::ranges::equal(filter.words(), other.words()));
    other.Clear();
    for (const uint32_t key : narrow) other.Insert(key);
    ASSERT_TRUE(std::ranges::equal(filter.words(), other.words()));
  });
}

// Empty strings, NULs, bytes that are no UTF-8, a mebibyte: each is its bytes.
std::vector<std::string> OddStrings(size_t count) {
  std::vector<std::string> strings = {"",
                                      std::string(1, '\0'),
                                      std::string(2, '\0'),
                                      "a",
                                      std::string("a\0", 2),
                                      std::string("a\0b", 3),
                                      "\xff\xfe\x80",
                                      "line\r",
                                      "line",
                                      " ",
                                      "\n",
                                      std::string(1 << 20, 'm'),
                                      std::string((1 << 20) + 1, 'm')};
  Random random(5);
  while (strings.size() < count) {
    std::string string(random.Below(300), ' ');
    for (char& c : string) c = static_cast<char>(random.Next());
    strings.push_back(std::move(string));
  }
  strings.resize(count);
  return strings;
}

TEST_P(BatchTest, StringsOfEveryShape) {
  ForEachShape(31, [](Filter& filter) {
    const std::vector<std::string> all = OddStrings(2 * kMaxLength);
    for (const size_t length : {size_t{0}, size_t{1}, size_t{2}, size_t{13}, size_t{63}, size_t{64}, size_t{65},
                                size_t{127}, size_t{128}, size_t{129}, kMaxLength}) {
      const std::vector<std::string> strings(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(length));
      const std::vector<std::string_view> views(strings.begin(), strings.end());
      // An Arrow column that starts in the middle of its bytes, as a slice does.
      std::string bytes = "before";
      std::vector<int32_t> offsets32 = {6};
      std::vector<int64_t> offsets64 = {6};
      for (const std::string& string : strings) {
        bytes += string;
        offsets32.push_back(static_cast<int32_t>(bytes.size()));
        offsets64.push_back(static_cast<int64_t>(bytes.size()));
      }
      const BinaryColumn column32(offsets32, bytes), column64(offsets64, bytes);
      ASSERT_EQ(column32.size(), length);
      ASSERT_EQ(column64.size(), length);

      filter.Clear();
      for (const std::string& string : strings) filter.Insert(string);
      const std::vector<uint64_t> expected(filter.words().begin(), filter.words().end());
      const auto expect_same = [&](const char* what) {
        EXPECT_TRUE(std::ranges::equal(filter.words(), expected)) << what << ", " << length << " strings";
        EXPECT_EQ(filter.InsertedCount(), length) << what;
        filter.Clear();
      };
      filter.Clear();
      filter.InsertBatch(views);
      expect_same("string_view");
      filter.InsertBatch(strings);
      expect_same("string");
      filter.InsertBatch(column32);
      expect_same("column of int32");
      filter.InsertBatch(column64);
      expect_same("column of int64");

      // The bits that change, one by one and in batches.
      std::vector<bool> changes;
      for (const std::string_view view : views) changes.push_back(filter.TryInsert(view));
      expect_same("TryInsert");
      std::vector<uint64_t> changed(BitmapWords(length), kRubbish);
      filter.TryInsertBatch(views, changed);
      EXPECT_TRUE(BitmapIs(changed, changes));
      expect_same("TryInsertBatch of string_view");
      std::fill(changed.begin(), changed.end(), kRubbish);
      filter.TryInsertBatch(column32, changed);
      EXPECT_TRUE(BitmapIs(changed, changes));
      expect_same("TryInsertBatch of a column");

      // Half of them are members.
      for (size_t i = 0; i < length; i += 2) filter.Insert(strings[i]);
      ExpectBatchesAgree(filter, std::span<const std::string_view>(views));
      ExpectBatchesAgree(filter, std::span<const std::string>(strings));
      ExpectBatchesAgree(filter, column32);
      ExpectBatchesAgree(filter, column64);
      ExpectSelectAgrees(filter, std::span<const std::string_view>(views));
      ExpectSelectAgrees(filter, column32);
      ExpectSelectAgrees(filter, column64);
      for (size_t i = 0; i < length; i += 2) {
        ASSERT_TRUE(filter.MayContain(strings[i]));
        ASSERT_TRUE(filter.MayContain(strings[i].data() == nullptr ? "" : std::string_view(strings[i])));
      }
    }
  });
}

// Kinds of text do not matter, their bytes do.
TEST_P(BatchTest, StringKindsAreOneKey) {
  ForEachShape(31, [](Filter& filter) {
    filter.Insert("literal");
    const std::string string = "literal";
    const char* pointer = string.c_str();
    EXPECT_TRUE(filter.MayContain(string));
    EXPECT_TRUE(filter.MayContain(std::string_view(string)));
    EXPECT_TRUE(filter.MayContain(pointer));
    EXPECT_TRUE(filter.MayContainHash(HashBytes("literal", filter.seed())));
    EXPECT_FALSE(filter.TryInsert(pointer));
    filter.Clear();
    EXPECT_FALSE(filter.MayContain(""));
    EXPECT_TRUE(filter.TryInsert(std::string_view()));
    EXPECT_TRUE(filter.MayContain(""));
  });
}

// Where the bitmap is short, only the keys that it has bits for take part.
TEST_P(BatchTest, ShortBitmaps) {
  ForEachShape(29, [](Filter& filter) {
    const std::vector<uint64_t> keys = Random(6).Take(300);
    const std::vector<std::string> strings = OddStrings(300);
    const std::vector<std::string_view> views(strings.begin(), strings.end());
    for (size_t words = 0; words <= 5; ++words) {
      const size_t reach = std::min<size_t>(300, words * 64);
      Filter expected = filter.Clone();
      for (size_t i = 0; i < reach; ++i) expected.Insert(keys[i]);
      Guarded memory(4096);
      const std::span<uint64_t> bitmap = memory.TailOf<uint64_t>(words);
      filter.TryInsertBatch(keys, bitmap);
      ASSERT_TRUE(std::ranges::equal(filter.words(), expected.words())) << words;
      ASSERT_EQ(filter.InsertedCount(), reach);
      std::vector<bool> answers = Answers(filter, keys);
      answers.resize(reach);
      filter.MayContainBatch(keys, bitmap);
      ASSERT_TRUE(BitmapIs(bitmap, answers)) << words;

      filter.Clear();
      filter.TryInsertBatch(views, bitmap);
      ASSERT_EQ(filter.InsertedCount(), reach);
      answers = Answers(filter, views);
      answers.resize(reach);
      filter.MayContainBatch(views, bitmap);
      ASSERT_TRUE(BitmapIs(bitmap, answers)) << words;
      filter.Clear();
    }
    // And where it is long, only the words that the keys need are written.
    std::vector<uint64_t> longer(9, kRubbish);
    filter.MayContainBatch(keys, longer);
    for (size_t i = 5; i < 9; ++i) ASSERT_EQ(longer[i], kRubbish) << i;
  });
}

TEST_P(BatchTest, SelectWithShortPositions) {
  ForEachShape(29, [](Filter& filter) {
    const std::vector<uint64_t> keys = Random(7).Take(200);
    filter.InsertBatch(keys);
    for (size_t room = 0; room < 200; room += room < 70 ? 1 : 13) {
      Guarded memory(4096);
      const std::span<uint32_t> positions = memory.TailOf<uint32_t>(room);
      ASSERT_EQ(filter.SelectBatch(keys, positions), room);
      for (uint32_t i = 0; i < room; ++i) ASSERT_EQ(positions[i], i);
      ASSERT_TRUE(memory.CanaryIntact(positions.size_bytes()));
    }
    filter.Clear();
    std::vector<uint32_t> positions(200);
    ASSERT_EQ(filter.SelectBatch(keys, positions), 0u);
  });
}

template <class Keys>
void ExpectSelectionsAgree(const Filter& filter, const Keys& keys) {
  Random random(8);
  for (size_t length = 0; length <= kMaxLength; ++length) {
    std::vector<uint32_t> selection(length);
    for (uint32_t& position : selection) position = static_cast<uint32_t>(random.Below(keys.size()));
    if (length % 2 == 0) std::sort(selection.begin(), selection.end());
    // Positions that do not exist are dropped, not read.
    for (size_t i = 0; i < length; i += 11) {
      const uint32_t beyond[] = {static_cast<uint32_t>(keys.size()), static_cast<uint32_t>(keys.size() + 1),
                                 0x80000000u, 0xffffffffu};
      selection[i] = beyond[random.Below(4)];
    }
    std::vector<uint32_t> expected;
    for (const uint32_t position : selection) {
      if (position < keys.size() && filter.MayContain(keys[position])) expected.push_back(position);
    }
    Guarded memory(4096);
    const std::span<uint32_t> positions = memory.TailOf<uint32_t>(length);
    size_t hits = filter.SelectBatch(keys, std::span<const uint32_t>(selection), positions);
    ASSERT_LE(hits, length);
    ASSERT_EQ(std::vector<uint32_t>(positions.begin(), positions.begin() + static_cast<std::ptrdiff_t>(hits)), expected)
        << length;
    ASSERT_TRUE(memory.CanaryIntact(positions.size_bytes()));

    // In place.
    memory.FillCanary();
    std::copy(selection.begin(), selection.end(), positions.begin());
    hits = filter.SelectBatch(keys, std::span<const uint32_t>(positions), positions);
    ASSERT_EQ(std::vector<uint32_t>(positions.begin(), positions.begin() + static_cast<std::ptrdiff_t>(hits)), expected)
        << length << ", in place";
    ASSERT_TRUE(memory.CanaryIntact(positions.size_bytes()));
  }
}

TEST_P(BatchTest, Selections) {
  ForEachShape(29, [](Filter& filter) {
    const std::vector<uint64_t> wide = Random(9).Take(150);
    std::vector<uint32_t> narrow(150);
    for (size_t i = 0; i < narrow.size(); ++i) narrow[i] = static_cast<uint32_t>(wide[i]);
    const std::vector<std::string> strings = OddStrings(150);
    const std::vector<std::string_view> views(strings.begin() + 13, strings.end());
    for (size_t i = 0; i < 130; i += 2) {
      filter.Insert(wide[i]);
      filter.Insert(narrow[i]);
      filter.Insert(views[i]);
    }
    ExpectSelectionsAgree(filter, std::span<const uint64_t>(wide));
    ExpectSelectionsAgree(filter, std::span<const uint32_t>(narrow));
    ExpectSelectionsAgree(filter, std::span<const std::string_view>(views));
  });
}

TEST_P(BatchTest, SelectionWithShortPositions) {
  ForEachShape(29, [](Filter& filter) {
    const std::vector<uint64_t> keys = Random(10).Take(200);
    filter.InsertBatch(keys);
    std::vector<uint32_t> selection(150);
    for (uint32_t i = 0; i < selection.size(); ++i) selection[i] = 199 - i;
    for (size_t room = 0; room < 150; room += 7) {
      Guarded memory(4096);
      const std::span<uint32_t> positions = memory.TailOf<uint32_t>(room);
      ASSERT_EQ(filter.SelectBatch(keys, std::span<const uint32_t>(selection), positions), room);
      for (uint32_t i = 0; i < room; ++i) ASSERT_EQ(positions[i], 199 - i);
      ASSERT_TRUE(memory.CanaryIntact(positions.size_bytes()));
    }
  });
}

// A filter that its CPU prefetches for answers as a small one does: larger than the caches of most machines.
TEST_P(BatchTest, BeyondTheCaches) {
  for (const LayoutAndK& shape : kShapes) {
    SCOPED_TRACE(shape.Name());
    const uint64_t blocks = (uint64_t{64} << 20) / static_cast<uint64_t>(BlockBits(shape.layout) / 8);
    Filter batch(test::SmallConfig(shape.layout, shape.k, blocks, GetParam()));
    Filter single(test::SmallConfig(shape.layout, shape.k, blocks, GetParam()));
    std::vector<uint64_t> keys = Random(11).Take(20'011);
    std::vector<uint64_t> changed(BitmapWords(keys.size()));
    for (size_t i = 1000; i < keys.size(); i += 5) keys[i] = keys[i - 1 - i % 300];
    std::vector<bool> expected;
    for (const uint64_t key : keys) expected.push_back(single.TryInsert(key));
    batch.TryInsertBatch(keys, changed);
    ASSERT_TRUE(BitmapIs(changed, expected));
    for (size_t i = 0; i < keys.size(); i += 2) keys[i] ^= 1;
    ExpectBatchesAgree(batch, std::span<const uint64_t>(keys).first(kMaxLength));
    std::vector<uint64_t> bitmap(BitmapWords(keys.size()));
    batch.MayContainBatch(keys, bitmap);
    ASSERT_TRUE(BitmapIs(bitmap, Answers(single, keys)));
  }
}

INSTANTIATE_TEST_SUITE_P(AllTargets, BatchTest, ::testing::ValuesIn(SupportedTargets()),
                         [](const auto& parameter) { return parameter.param; });

// ---- Columns.

TEST(BinaryColumn, Slices) {
  const std::string bytes = "aabbbcccc";
  const std::vector<int32_t> offsets = {0, 2, 2, 5, 9};
  const BinaryColumn column(offsets, bytes);
  ASSERT_EQ(column.size(), 4u);
  EXPECT_EQ(column[0], "aa");
  EXPECT_EQ(column[1], "");
  EXPECT_EQ(column[2], "bbb");
  EXPECT_EQ(column[3], "cccc");
  const std::vector<int64_t> wide = {2, 5, 9};
  const BinaryColumn slice(wide, bytes);
  ASSERT_EQ(slice.size(), 2u);
  EXPECT_EQ(slice[0], "bbb");
  EXPECT_EQ(slice[1], "cccc");
  EXPECT_EQ(BinaryColumn(std::span<const int32_t>(), "").size(), 0u);
  EXPECT_EQ(BinaryColumn(std::span<const int64_t>(wide).first(1), bytes).size(), 0u);
}

template <class Offset>
void ExpectRefused(const std::vector<Offset>& offsets, const char* named) {
  const Result<BinaryColumn> result = BinaryColumn::Create(std::span<const Offset>(offsets), "0123456789");
  ASSERT_FALSE(result.ok()) << named;
  EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(result.error().what()).find(named), std::string::npos) << result.error().what();
  EXPECT_THROW(BinaryColumn(std::span<const Offset>(offsets), "0123456789"), Error);
}

TEST(BinaryColumn, RefusesBadOffsets) {
  ExpectRefused<int32_t>({-1, 3}, "-1");
  ExpectRefused<int32_t>({0, 5, 4}, "4");
  ExpectRefused<int32_t>({0, 11}, "11");
  ExpectRefused<int32_t>({0, -2147483647 - 1}, "-2147483648");
  ExpectRefused<int32_t>({11}, "11");
  ExpectRefused<int64_t>({-7, 3}, "-7");
  ExpectRefused<int64_t>({0, 5, 4, 10}, "4");
  ExpectRefused<int64_t>({0, int64_t{1} << 62}, "4611686018427387904");
  ExpectRefused<int64_t>({3, -1}, "-1");
}

}  // namespace
}  // namespace bloomline
