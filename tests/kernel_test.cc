// Every kernel, for every layout, k and target, against the scalar oracle; and the oracle against the layouts as
// test_util.h spells them out once more.
#include "kernels/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "bloomline/target.h"
#include "kernels/layout.h"
#include "tests/test_util.h"

namespace bloomline {
namespace {

using detail::BlockBits;
using detail::BlockOps;
using detail::KeyForm;
using detail::KeySpan;
using test::BitmapWords;
using test::BitOf;
using test::Guarded;
using test::Random;

constexpr uint64_t kSeed = 0x5eed;
constexpr size_t kChunk = 64;
constexpr size_t kMaxLength = 2 * kChunk + 2;
constexpr KeyForm kForms[] = {KeyForm::kU64, KeyForm::kU32, KeyForm::kHash};

size_t KeyBytes(KeyForm form) { return form == KeyForm::kU32 ? 4 : 8; }

// ---- The oracle.

TEST(Oracle, AgreesWithTheSlowReading) {
  Random random(1);
  std::vector<uint64_t> hashes = random.Take(3000);
  for (int bit = 0; bit < 64; ++bit) hashes.push_back(uint64_t{1} << bit);
  for (const uint64_t hash : {uint64_t{0}, ~uint64_t{0}, uint64_t{0xffffffff}, ~uint64_t{0xffffffff}}) {
    hashes.push_back(hash);
  }
  for (const auto& [layout, k] : test::AllLayouts()) {
    SCOPED_TRACE((test::LayoutAndK{layout, k}.Name()));
    ASSERT_TRUE(IsValidHashCount(layout, k));
    test::slow::Filter slow(layout, k, 53);
    ASSERT_EQ(kernels::WordsPerBlock(layout), slow.WordsPerBlock());
    std::vector<uint64_t> words(53 * slow.WordsPerBlock());
    for (size_t i = 0; i < hashes.size(); ++i) {
      kernels::LineMask expected;
      for (const unsigned bit : test::slow::BitsOf(layout, k, hashes[i])) {
        ASSERT_LT(bit, slow.WordsPerBlock() * 64);
        expected.words[bit / 64] |= uint64_t{1} << (bit % 64);
      }
      const kernels::LineMask mask = kernels::MaskOf(layout, k, hashes[i]);
      for (size_t word = 0; word < 8; ++word) ASSERT_EQ(mask.words[word], expected.words[word]) << hashes[i];
      ASSERT_EQ(kernels::TestKey(layout, k, words.data(), 53, hashes[i]), slow.MayContain(hashes[i]));
      if (i % 5 == 0 || i >= 3000) {
        ASSERT_EQ(kernels::MarkKey(layout, k, words.data(), 53, hashes[i]), slow.Insert(hashes[i]));
      }
    }
    ASSERT_EQ(words, slow.words());
  }
}

TEST(KernelTables, OnlyWhatFits) {
  for (const std::string& target : SupportedTargets()) {
    for (const Layout layout : test::kLayouts) {
      const std::vector<int> fitting = test::HashCounts(layout);
      for (int k = -1; k <= 20; ++k) {
        const bool fits = std::find(fitting.begin(), fitting.end(), k) != fitting.end();
        EXPECT_EQ(IsValidHashCount(layout, k), fits) << static_cast<int>(layout) << " k " << k;
        EXPECT_EQ(kernels::FindBlockOps(layout, k, target) != nullptr, fits) << target << " k " << k;
      }
    }
  }
  EXPECT_EQ(kernels::FindBlockOps(Layout::kSplit512, 8, "AVX9"), nullptr);
  const std::vector<std::string> supported = SupportedTargets();
  for (const std::string& target : CompiledTargets()) {
    if (std::find(supported.begin(), supported.end(), target) == supported.end()) {
      EXPECT_EQ(kernels::FindBlockOps(Layout::kSplit512, 8, target), nullptr) << target;
    }
  }
}

// ---- The kernels.

// The bits of a filter between two guard pages, ending at the upper one, and what the oracle makes of them.
class Subject {
 public:
  Subject(Layout layout, int k, uint64_t blocks)
      : layout_(layout), k_(k), memory_(Bytes(layout, blocks)), oracle_(blocks * kernels::WordsPerBlock(layout)) {
    bits_ = {memory_.TailOf<uint64_t>(Bytes(layout, blocks) / 8).data(), blocks, kSeed, 0};
    Clear();
  }
  void Clear() {
    std::fill_n(bits_.words, Bytes(layout_, bits_.blocks) / 8, 0);
    std::fill(oracle_.begin(), oracle_.end(), 0);
  }
  const BlockBits& bits() const { return bits_; }
  void SetPrefetch(uint32_t prefetch) { bits_.prefetch = prefetch; }
  bool OracleInsert(uint64_t hash) { return kernels::MarkKey(layout_, k_, oracle_.data(), bits_.blocks, hash); }
  bool OracleContains(uint64_t hash) const { return kernels::TestKey(layout_, k_, oracle_.data(), bits_.blocks, hash); }
  // The filter holds what the oracle's holds, and nothing in front of it or in its padding was written.
  bool Agrees() const {
    const size_t bytes = Bytes(layout_, bits_.blocks);
    for (size_t i = oracle_.size(); i < bytes / 8; ++i) {
      if (bits_.words[i] != 0) return false;
    }
    return std::equal(oracle_.begin(), oracle_.end(), bits_.words) && memory_.CanaryIntact(bytes);
  }

 private:
  // Whole lines, as Filter's storage is.
  static size_t Bytes(Layout layout, uint64_t blocks) {
    return (blocks * kernels::WordsPerBlock(layout) * 8 + 63) / 64 * 64;
  }
  Layout layout_;
  int k_;
  Guarded memory_;
  BlockBits bits_;
  std::vector<uint64_t> oracle_;
};

// Keys of one form in guarded memory, with their hashes.
class Keys {
 public:
  explicit Keys(KeyForm form) : form_(form) {}
  // Copies the values so that the array ends right before the guard page, or `gap` bytes earlier.
  void Place(const std::vector<uint64_t>& values, size_t gap = 0) {
    std::byte* at = memory_.Tail(values.size() * KeyBytes(form_) + gap);
    span_ = {at, values.size(), form_};
    hashes_.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const auto narrow = static_cast<uint32_t>(values[i]);
      if (form_ == KeyForm::kU32) {
        std::memcpy(at + i * 4, &narrow, 4);
      } else {
        std::memcpy(at + i * 8, &values[i], 8);
      }
      hashes_[i] =
          form_ == KeyForm::kHash ? values[i] : detail::Mix(form_ == KeyForm::kU32 ? narrow : values[i], kSeed);
    }
  }
  const KeySpan& span() const { return span_; }
  uint64_t hash(size_t i) const { return hashes_[i]; }
  size_t size() const { return hashes_.size(); }

 private:
  KeyForm form_;
  Guarded memory_{1 << 16};
  KeySpan span_;
  std::vector<uint64_t> hashes_;
};

// A bitmap of exactly as many words as the contract says, before a guard page, filled with rubbish.
class Bitmap {
 public:
  uint64_t* Prepare(size_t keys) {
    memory_.FillCanary();
    words_ = memory_.TailOf<uint64_t>(BitmapWords(keys));
    return words_.data();
  }
  bool Is(const std::vector<bool>& expected) const {
    for (size_t i = 0; i < words_.size() * 64; ++i) {
      if (BitOf(words_, i) != (i < expected.size() && expected[i])) return false;
    }
    return memory_.CanaryIntact(words_.size_bytes());
  }

 private:
  Guarded memory_{4096};
  std::span<uint64_t> words_;
};

class KernelTest : public ::testing::TestWithParam<std::tuple<std::string, Layout>> {
 protected:
  // body(k, ops) for every k of the layout.
  template <class Body>
  void ForEachHashCount(Body body) {
    const auto& [target, layout] = GetParam();
    for (const int k : test::HashCounts(layout)) {
      SCOPED_TRACE("k " + std::to_string(k));
      const BlockOps* ops = kernels::FindBlockOps(layout, k, target);
      ASSERT_NE(ops, nullptr);
      body(k, *ops);
      if (HasFatalFailure()) return;
    }
  }
  Layout layout() const { return std::get<1>(GetParam()); }

  // All three batch calls on one set of keys, from an empty filter, against the oracle.
  void CheckBatches(const BlockOps& ops, Subject& subject, const Keys& keys, const Keys& probes) {
    std::vector<bool> expected(keys.size());
    for (const uint32_t prefetch : {0u, 1u}) {
      subject.SetPrefetch(prefetch);
      subject.Clear();
      for (size_t i = 0; i < keys.size(); ++i) expected[i] = subject.OracleInsert(keys.hash(i));
      ops.try_insert_batch(subject.bits(), keys.span(), bitmap_.Prepare(keys.size()));
      ASSERT_TRUE(bitmap_.Is(expected)) << "try_insert_batch, prefetch " << prefetch << ", " << keys.size() << " keys";
      ASSERT_TRUE(subject.Agrees()) << "try_insert_batch, prefetch " << prefetch << ", " << keys.size() << " keys";

      // Once more into the full filter: nothing is new.
      ops.try_insert_batch(subject.bits(), keys.span(), bitmap_.Prepare(keys.size()));
      ASSERT_TRUE(bitmap_.Is(std::vector<bool>(keys.size()))) << "repeated try_insert_batch";

      subject.Clear();
      for (size_t i = 0; i < keys.size(); ++i) subject.OracleInsert(keys.hash(i));
      ops.insert_batch(subject.bits(), keys.span());
      ASSERT_TRUE(subject.Agrees()) << "insert_batch, prefetch " << prefetch << ", " << keys.size() << " keys";

      ops.contains_batch(subject.bits(), keys.span(), bitmap_.Prepare(keys.size()));
      ASSERT_TRUE(bitmap_.Is(std::vector<bool>(keys.size(), true))) << "members, prefetch " << prefetch;

      std::vector<bool> answers(probes.size());
      for (size_t i = 0; i < probes.size(); ++i) answers[i] = subject.OracleContains(probes.hash(i));
      ops.contains_batch(subject.bits(), probes.span(), bitmap_.Prepare(probes.size()));
      ASSERT_TRUE(bitmap_.Is(answers)) << "contains_batch, prefetch " << prefetch << ", " << probes.size() << " keys";
      ASSERT_TRUE(subject.Agrees()) << "a lookup wrote";
    }
  }

  Bitmap bitmap_;
};

std::vector<uint64_t> EdgeHashes(uint64_t seed, size_t random_ones) {
  std::vector<uint64_t> hashes = Random(seed).Take(random_ones);
  for (int bit = 0; bit < 64; bit += 7) hashes.push_back(uint64_t{1} << bit);
  for (const uint64_t hash : {uint64_t{0}, ~uint64_t{0}, uint64_t{0xffffffff}, ~uint64_t{0xffffffff}}) {
    hashes.insert(hashes.begin() + static_cast<std::ptrdiff_t>(hashes.size() / 2), hash);
  }
  return hashes;
}

TEST_P(KernelTest, OneKey) {
  ForEachHashCount([&](int k, const BlockOps& ops) {
    for (const uint64_t blocks : {uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{7}, uint64_t{61}, uint64_t{1024}}) {
      Subject subject(layout(), k, blocks);
      const std::vector<uint64_t> hashes = EdgeHashes(blocks, 100 + blocks);
      for (size_t i = 0; i < hashes.size(); ++i) {
        const uint64_t hash = hashes[i];
        ASSERT_EQ(ops.contains(subject.bits(), hash), subject.OracleContains(hash)) << blocks << " blocks, " << hash;
        const bool changes = subject.OracleInsert(hash);
        if (i % 2 == 0) {
          ASSERT_EQ(ops.try_insert(subject.bits(), hash), changes) << blocks << " blocks, hash " << hash;
        } else {
          ops.insert(subject.bits(), hash);
        }
        ASSERT_TRUE(ops.contains(subject.bits(), hash)) << blocks << " blocks, hash " << hash;
        ASSERT_FALSE(ops.try_insert(subject.bits(), hash)) << blocks << " blocks, hash " << hash;
        if (i < 40 || i + 1 == hashes.size()) {
          ASSERT_TRUE(subject.Agrees()) << blocks << " blocks, hash " << hash;
        }
      }
    }
  });
}

// Every length, the keys and the bitmap ending at guard pages, with repeats inside a chunk and across chunks.
TEST_P(KernelTest, BatchLengths) {
  ForEachHashCount([&](int k, const BlockOps& ops) {
    Subject subject(layout(), k, 13);
    for (const KeyForm form : kForms) {
      Keys keys(form), probes(form);
      Random random(static_cast<uint64_t>(k));
      for (size_t length = 0; length <= kMaxLength; ++length) {
        std::vector<uint64_t> values = random.Take(length);
        for (size_t i = 1; i < length; i += 3) values[i] = values[random.Below(i)];
        keys.Place(values);
        for (size_t i = 0; i < length; i += 2) values[i] = random.Next();
        probes.Place(values);
        CheckBatches(ops, subject, keys, probes);
        if (HasFatalFailure()) return;
      }
    }
  });
}

TEST_P(KernelTest, NothingAtAll) {
  ForEachHashCount([&](int k, const BlockOps& ops) {
    Subject subject(layout(), k, 3);
    for (const KeyForm form : kForms) {
      const KeySpan none = {nullptr, 0, form};
      ops.contains_batch(subject.bits(), none, nullptr);
      ops.insert_batch(subject.bits(), none);
      ops.try_insert_batch(subject.bits(), none, nullptr);
    }
    ASSERT_TRUE(subject.Agrees());
  });
}

TEST_P(KernelTest, KeysAtEveryByteOffset) {
  ForEachHashCount([&](int k, const BlockOps& ops) {
    Subject subject(layout(), k, 17);
    for (const KeyForm form : kForms) {
      Keys keys(form), probes(form);
      Random random(7 + static_cast<uint64_t>(k));
      for (size_t gap = 0; gap < 64; ++gap) {
        std::vector<uint64_t> values = random.Take(kChunk + 1 + gap % 20);
        keys.Place(values, gap);
        for (size_t i = 1; i < values.size(); i += 2) values[i] = random.Next();
        probes.Place(values, 63 - gap);
        CheckBatches(ops, subject, keys, probes);
        if (HasFatalFailure()) return;
      }
    }
  });
}

// Longer than any pipeline runs ahead; many repeats near and far.
TEST_P(KernelTest, LongBatches) {
  ForEachHashCount([&](int k, const BlockOps& ops) {
    for (const uint64_t blocks : {5u, 301u}) {
      Subject subject(layout(), k, blocks);
      for (const KeyForm form : kForms) {
        Keys keys(form), probes(form);
        Random random(11 + static_cast<uint64_t>(k));
        std::vector<uint64_t> values = random.Take(1500);
        for (size_t i = 1; i < values.size(); ++i) {
          if (random.Below(4) == 0) values[i] = values[i - 1 - random.Below(std::min<size_t>(i, 200))];
        }
        keys.Place(values);
        for (uint64_t& value : values) {
          if (random.Below(2) == 0) value = random.Next();
        }
        probes.Place(values);
        CheckBatches(ops, subject, keys, probes);
        if (HasFatalFailure()) return;
      }
    }
  });
}

// One block takes all keys of a chunk: by there being one only, by equal keys, by hashes made for it. The first and the
// last block touch guard pages on both sides: 128 blocks are whole pages.
TEST_P(KernelTest, CrowdedBlocksAtTheEdges) {
  ForEachHashCount([&](int k, const BlockOps& ops) {
    Keys keys(KeyForm::kHash), probes(KeyForm::kHash);
    const auto check = [&](Subject& subject, std::vector<uint64_t> hashes) {
      keys.Place(hashes);
      for (size_t i = 0; i < hashes.size(); i += 3) hashes[i] ^= 0x123456789abcd;
      probes.Place(hashes);
      CheckBatches(ops, subject, keys, probes);
    };
    Random random(13);
    Subject one(layout(), k, 1);
    check(one, random.Take(200));
    check(one, EdgeHashes(1, 90));
    Subject many(layout(), k, 128);
    for (const uint64_t block : {uint64_t{0}, uint64_t{1}, uint64_t{64}, uint64_t{127}}) {
      std::vector<uint64_t> hashes = random.Take(150);
      for (uint64_t& hash : hashes) hash = (hash >> 7) | (block << 57);
      check(many, hashes);
    }
    for (const uint64_t hash : {uint64_t{0}, ~uint64_t{0}, random.Next()}) {
      check(many, std::vector<uint64_t>(130, hash));
    }
    check(many, EdgeHashes(2, 300));
  });
}

// The block index up to the most blocks that a filter may have, in memory that only exists where it is touched.
TEST_P(KernelTest, HugeBlockCounts) {
  std::vector<uint64_t> counts = {(uint64_t{1} << 26) - 1, uint64_t{1} << 26};
  if (layout() != Layout::kSplit256) {
    for (const uint64_t blocks : {(uint64_t{1} << 31) + 1, (uint64_t{1} << 32) - 1}) counts.push_back(blocks);
  }
  for (const uint64_t blocks : counts) {
    const size_t per_block = kernels::WordsPerBlock(layout());
    const size_t bytes = blocks * per_block * 8;
    void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) GTEST_SKIP() << "no address space for " << bytes << " bytes";
    madvise(map, bytes, MADV_NOHUGEPAGE);
    auto* words = static_cast<uint64_t*>(map);
    ForEachHashCount([&](int k, const BlockOps& ops) {
      const std::vector<uint64_t> values = EdgeHashes(blocks, 24);
      Keys keys(KeyForm::kHash);
      keys.Place(values);
      const BlockBits bits = {words, blocks, kSeed, static_cast<uint32_t>(k % 2)};
      ops.insert_batch(bits, keys.span());
      // Each block that was touched holds the masks of its keys and no more.
      for (const uint64_t hash : values) {
        const uint64_t* block = words + test::slow::BlockIndex(layout(), hash, blocks) * per_block;
        kernels::LineMask mask;
        for (const uint64_t other : values) {
          if (test::slow::BlockIndex(layout(), other, blocks) != test::slow::BlockIndex(layout(), hash, blocks)) {
            continue;
          }
          const kernels::LineMask its = kernels::MaskOf(layout(), k, other);
          for (size_t i = 0; i < 8; ++i) mask.words[i] |= its.words[i];
        }
        ASSERT_TRUE(std::equal(block, block + per_block, mask.words)) << blocks << " blocks, hash " << hash;
        ASSERT_TRUE(ops.contains(bits, hash)) << blocks << " blocks, hash " << hash;
      }
      ops.contains_batch(bits, keys.span(), bitmap_.Prepare(keys.size()));
      ASSERT_TRUE(bitmap_.Is(std::vector<bool>(keys.size(), true))) << blocks << " blocks";
      ops.try_insert_batch(bits, keys.span(), bitmap_.Prepare(keys.size()));
      ASSERT_TRUE(bitmap_.Is(std::vector<bool>(keys.size()))) << blocks << " blocks";
      madvise(words, bytes, MADV_DONTNEED);  // all zero again
    });
    munmap(map, bytes);
    if (HasFatalFailure()) return;
  }
}

std::string ParameterName(const ::testing::TestParamInfo<KernelTest::ParamType>& info) {
  static constexpr const char* kNames[] = {"auto", "z1", "z2", "z4", "z8", "line512", "split256"};
  return std::get<0>(info.param) + "_" + kNames[static_cast<int>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(AllTargets, KernelTest,
                         ::testing::Combine(::testing::ValuesIn(SupportedTargets()),
                                            ::testing::ValuesIn(test::kLayouts)),
                         ParameterName);

}  // namespace
}  // namespace bloomline
