// ConcurrentCountingFilter: many threads end with exactly the result of one, readers see every key that stays, and
// copies taken meanwhile are sound. To be run under ThreadSanitizer too.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "bloomline/concurrent_counting_filter.h"
#include "tests/counting_util.h"

namespace bloomline {
namespace {

using test::BitmapWords;
using test::CounterModel;
using test::Random;
using test::WordsOf;

constexpr uint64_t kSeed = 1234;
constexpr size_t kThreads = 4;

FilterConfig Config(Layout layout, uint64_t blocks) { return test::SmallConfig(layout, 8, blocks, "", kSeed); }

template <class Body>
void InThreads(size_t count, const Body& body) {
  std::vector<std::thread> threads;
  for (size_t t = 0; t < count; ++t) threads.emplace_back([&body, t] { body(t); });
  for (std::thread& thread : threads) thread.join();
}

// What each word of a line counts, without what was spilled: as many as there are keys in the line.
uint64_t CountersIn(Layout layout, uint64_t word) {
  const int bits = test::CounterBitsOf(layout);
  uint64_t sum = 0;
  for (; word != 0; word >>= bits) sum += word & ((uint64_t{1} << bits) - 1);
  return sum;
}

// Every key counts once in each of its line's eight words: a line of one moment has eight equal sums.
void ExpectWholeLines(const CountingFilter& filter) {
  const std::span<const uint64_t> words = filter.words();
  for (size_t i = 0; i < words.size(); ++i) {
    ASSERT_EQ(CountersIn(filter.layout(), words[i]), CountersIn(filter.layout(), words[i / 8 * 8])) << "word " << i;
  }
}

uint64_t AllCounters(const CountingFilter& filter) {
  uint64_t sum = filter.Overflow().spilled_keys;
  for (const uint64_t word : filter.words()) sum += CountersIn(filter.layout(), word);
  return sum;
}

using Parameters = std::tuple<Layout, OverflowPolicy>;
class ConcurrentCountingTest : public ::testing::TestWithParam<Parameters> {
 protected:
  Layout layout() const { return std::get<0>(GetParam()); }
  OverflowPolicy policy() const { return std::get<1>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(All, ConcurrentCountingTest,
                         ::testing::Combine(::testing::ValuesIn(test::kCountingLayouts),
                                            ::testing::ValuesIn(test::kPolicies)),
                         [](const auto& parameter) {
                           return LayoutName(std::get<0>(parameter.param), 8) + "_" +
                                  OverflowPolicyName(std::get<1>(parameter.param));
                         });

// One thread: the answers, bitmaps and bytes of a CountingFilter.
TEST_P(ConcurrentCountingTest, OneThreadIsACountingFilter) {
  CountingFilter plain(Config(layout(), 2), policy());
  ConcurrentCountingFilter concurrent(Config(layout(), 2), policy());
  Random random(6);
  const std::vector<uint64_t> pool = random.Take(60);
  std::vector<std::string> texts;
  for (const uint64_t key : pool) texts.push_back(std::to_string(key));
  bool saw_full = false;
  for (int round = 0; round < 400; ++round) {
    const size_t length = static_cast<size_t>(random.Below(200));
    const bool add = round % 100 < 60 || round % 3 == 0;
    std::vector<uint64_t> keys;
    std::vector<std::string_view> views;
    for (size_t i = 0; i < length; ++i) {
      const size_t number = static_cast<size_t>(random.Below(1 + random.Below(pool.size())));
      keys.push_back(pool[number]);
      views.push_back(texts[number]);
    }
    std::vector<uint64_t> expected(BitmapWords(length) + 1, 7), bitmap = expected;
    const std::span<const std::string_view> strings(views);
    size_t failed = 0, expected_failed = 0;
    switch (round % 4) {
      case 0:
        expected_failed = add ? plain.AddBatch(keys, expected) : plain.RemoveBatch(keys, expected);
        failed = add ? concurrent.AddBatch(keys, bitmap) : concurrent.RemoveBatch(keys, bitmap);
        break;
      case 1:
        expected_failed = add ? plain.AddHashBatch(keys, expected) : plain.RemoveHashBatch(keys, expected);
        failed = add ? concurrent.AddHashBatch(keys, bitmap) : concurrent.RemoveHashBatch(keys, bitmap);
        break;
      case 2:
        expected_failed = add ? plain.AddBatch(strings, expected) : plain.RemoveBatch(strings, expected);
        failed = add ? concurrent.AddBatch(strings, bitmap) : concurrent.RemoveBatch(strings, bitmap);
        break;
      default:
        for (size_t i = 0; i < length; ++i) {
          const bool done = add ? plain.Add(keys[i]) : plain.Remove(keys[i]);
          ASSERT_EQ(add ? concurrent.Add(keys[i]) : concurrent.Remove(keys[i]), done);
          const bool text_done = add ? plain.Add(texts[i % 60]) : plain.Remove(texts[i % 60]);
          ASSERT_EQ(add ? concurrent.Add(texts[i % 60]) : concurrent.Remove(texts[i % 60]), text_done);
        }
    }
    ASSERT_EQ(failed, expected_failed);
    ASSERT_EQ(bitmap, expected) << round;
    ASSERT_EQ(concurrent.InsertedCount(), plain.InsertedCount());
    saw_full = saw_full || plain.Overflow().full_counters != 0;
    for (const uint64_t key : pool) {
      ASSERT_EQ(concurrent.Count(key), plain.Count(key));
      ASSERT_EQ(concurrent.CountHash(key), plain.CountHash(key));
      ASSERT_EQ(concurrent.MayContain(key), plain.MayContain(key));
    }
    for (const std::string& text : texts) ASSERT_EQ(concurrent.Count(text), plain.Count(text));
    plain.MayContainBatch(keys, expected);
    concurrent.MayContainBatch(keys, bitmap);
    ASSERT_EQ(bitmap, expected);
    plain.MayContainHashBatch(keys, expected);
    concurrent.MayContainHashBatch(keys, bitmap);
    ASSERT_EQ(bitmap, expected);
    plain.MayContainBatch(strings, expected);
    concurrent.MayContainBatch(strings, bitmap);
    ASSERT_EQ(bitmap, expected);
  }
  EXPECT_TRUE(saw_full) << "no overflow was tested";
  // A bitmap that is too short limits the keys.
  uint64_t word = 0;
  std::vector<uint64_t> many(100);
  for (size_t i = 0; i < many.size(); ++i) many[i] = test::RandomKey(i);
  EXPECT_EQ(concurrent.AddBatch(many, {&word, 1}), plain.AddBatch(many, {&word, 1}));
  EXPECT_EQ(concurrent.AddHashBatch(many, {&word, 1}), plain.AddHashBatch(many, {&word, 1}));
  const OverflowReport report = plain.Overflow();
  const CountingFilter released = std::move(concurrent).Release();
  EXPECT_EQ(WordsOf(released), WordsOf(plain));
  EXPECT_EQ(released.InsertedCount(), plain.InsertedCount());
  EXPECT_EQ(released.Overflow().spilled_counters, report.spilled_counters);
  EXPECT_EQ(released.Overflow().spilled_keys, report.spilled_keys);
}

// Every thread adds and removes: keys of its own and keys that all share, in filters of few lines, where they are in
// one another's way, and of many. Beside them readers and a thread that takes copies.
TEST_P(ConcurrentCountingTest, ThreadsEndWithTheSequentialResult) {
  // Under saturate the order matters once a counter is full: there the load is kept below that.
  const bool saturate = policy() == OverflowPolicy::kSaturate;
  for (const uint64_t blocks : {uint64_t{2}, uint64_t{37}, uint64_t{5000}}) {
    SCOPED_TRACE(blocks);
    // Shared keys go beyond 15 in total, where they may.
    const size_t shared = 10, own = saturate ? 1 : 20;
    std::vector<uint64_t> hashes;
    for (size_t i = 0; i < shared + own * kThreads; ++i) hashes.push_back(test::RandomKey(i + 100 * blocks));
    std::vector<uint64_t> staying;
    for (uint64_t i = 0; i < 3; ++i) staying.push_back(test::RandomKey(7'000'000 + i));
    CountingFilter start(Config(layout(), blocks), policy());
    EXPECT_EQ(start.AddHashBatch(staying), 0U);
    // As many of a key as one thread may have in: so that no counter is full under saturate, whatever shares it.
    const uint64_t most = saturate ? 1 : layout() == Layout::kCounting4 ? 8 : 90;
    ConcurrentCountingFilter filter(std::move(start));
    std::vector<std::map<uint64_t, uint64_t>> net(kThreads);
    std::atomic<size_t> running{kThreads};
    std::atomic<uint64_t> lost{0}, refused{0};
    const auto write = [&](size_t t) {
      Random random(t + 1);
      std::map<uint64_t, uint64_t>& mine = net[t];
      const int operations = 15'000;
      for (int i = 0; i < operations; ++i) {
        const uint64_t pick = random.Below(shared + own);
        const uint64_t hash = hashes[static_cast<size_t>(pick < shared ? pick : pick + t * own)];
        uint64_t& count = mine[hash];
        const bool add = saturate ? count < most && random.Below(2) == 0 : count < most && random.Below(5) < 3;
        if (i % 50 == 0 && count + 2 <= most) {  // a batch, the key twice
          const uint64_t twice[] = {hash, hash};
          const size_t failed = filter.AddHashBatch(twice);
          refused += failed;
          count += 2 - failed;
        } else if (add) {
          const bool added = filter.AddHash(hash);
          refused += !added;
          count += added;
          if (added && !filter.MayContainHash(hash)) ++lost;
        } else if (count > 0) {
          if (!filter.RemoveHash(hash)) ++lost;
          --count;
        }
      }
      --running;
    };
    const auto read = [&] {
      std::vector<uint64_t> bitmap(1);
      do {
        for (const uint64_t hash : staying) {
          if (!filter.MayContainHash(hash) || filter.CountHash(hash) == 0) ++lost;
        }
        filter.MayContainHashBatch(staying, bitmap);
        if (bitmap[0] != 7) ++lost;
        (void)filter.InsertedCount();
      } while (running.load() != 0);
    };
    uint64_t copies = 0;
    const auto copy = [&] {
      do {
        const Result<CountingFilter> taken = filter.TryCopy();
        ASSERT_TRUE(taken.ok()) << taken.error().what();
        for (const uint64_t hash : staying) ASSERT_GE(taken->CountHash(hash), 1U);
        if (policy() == OverflowPolicy::kSpill) {
          // All of one moment, side table included.
          ASSERT_EQ(AllCounters(*taken), 8 * taken->InsertedCount());
          std::vector<std::byte> bytes(taken->SerializedBytes());
          taken->SerializeTo(bytes);
          ASSERT_TRUE(CountingFilter::TryDeserialize(bytes).ok());
        } else {
          ASSERT_NO_FATAL_FAILURE(ExpectWholeLines(*taken));
        }
        ++copies;
      } while (running.load() != 0);
    };
    InThreads(kThreads + 2, [&](size_t t) {
      if (t < kThreads) {
        write(t);
      } else if (t == kThreads) {
        read();
      } else {
        copy();
      }
    });
    EXPECT_EQ(lost, 0U);
    EXPECT_GT(copies, 0U);
    // What is left, one key after the other.
    CounterModel model(layout(), policy(), blocks);
    for (const uint64_t hash : staying) ASSERT_TRUE(model.Add(hash));
    for (const auto& mine : net) {
      for (const auto& [hash, count] : mine) {
        for (uint64_t i = 0; i < count; ++i) ASSERT_TRUE(model.Add(hash));
      }
    }
    if (policy() == OverflowPolicy::kReject && blocks == 2) {
      EXPECT_GT(refused, 0U) << "no refusal was tested";
    }
    if (policy() != OverflowPolicy::kReject) {
      EXPECT_EQ(refused, 0U);
    }
    EXPECT_EQ(filter.InsertedCount(), model.inserted());
    CountingFilter released = std::move(filter).Release();
    EXPECT_EQ(WordsOf(released), model.Words());
    EXPECT_EQ(released.InsertedCount(), model.inserted());
    model.ExpectOverflow(released.Overflow());
    if (policy() == OverflowPolicy::kSpill && blocks == 2) {
      EXPECT_GT(released.Overflow().spilled_keys, 0U) << "nothing was spilled";
    }
    if (saturate) {
      EXPECT_EQ(released.Overflow().full_counters, 0U) << "the test's load is too high for its model";
    }
    // It goes on as a filter for one thread.
    for (const auto& mine : net) {
      for (const auto& [hash, count] : mine) {
        for (uint64_t i = 0; i < count; ++i) ASSERT_TRUE(released.RemoveHash(hash));
      }
    }
    EXPECT_EQ(released.RemoveHashBatch(staying), 0U);
    EXPECT_TRUE(test::AllZero(released));
    EXPECT_EQ(released.Overflow().spilled_counters, 0U);
  }
}

// A copy beside writers that change one line all the time.
TEST_P(ConcurrentCountingTest, CopiesAreOfWholeLines) {
  if (policy() == OverflowPolicy::kSpill) GTEST_SKIP() << "what is beyond the maximum is not in the line";
  ConcurrentCountingFilter filter(Config(layout(), 1), policy());
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> changes{0};
  InThreads(3, [&](size_t t) {
    if (t < 2) {
      for (uint64_t i = 0; !stop.load(); i = (i + 1) % 1000) {
        const uint64_t hash = test::RandomKey(1000 * t + i);
        if (filter.AddHash(hash)) filter.RemoveHash(hash);
        ++changes;
      }
      return;
    }
    // Until the writers have had their turns too, on machines of one core.
    for (int copies = 0; copies < 500 || changes.load() < 20'000; ++copies) {
      const Result<CountingFilter> copy = filter.TryCopy();
      if (!copy.ok()) {
        ADD_FAILURE() << copy.error().what();
        break;
      }
      ExpectWholeLines(*copy);
      if (HasFailure()) break;
    }
    stop = true;
  });
  EXPECT_TRUE(test::AllZero(std::move(filter).Release()));
}

// Adds only, far beyond the maximum, and then removes only: under saturate, too, the order does not matter.
TEST_P(ConcurrentCountingTest, OverflowingAddsAndThenRemoves) {
  if (policy() == OverflowPolicy::kReject) GTEST_SKIP() << "which adds are refused depends on the order";
  const uint64_t copies = layout() == Layout::kCounting4 ? 8 : 100;
  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < 50; ++i) hashes.push_back(test::RandomKey(i));
  ConcurrentCountingFilter filter(Config(layout(), 3), policy());
  CountingFilter plain(Config(layout(), 3), policy());
  const size_t half = hashes.size() / 2;
  InThreads(kThreads, [&](size_t) {
    for (uint64_t i = 0; i < copies; ++i) filter.AddHashBatch(hashes);
  });
  for (uint64_t i = 0; i < copies * kThreads; ++i) plain.AddHashBatch(hashes);
  EXPECT_EQ(WordsOf(filter.TryCopy().value()), WordsOf(plain));
  EXPECT_GT(plain.Overflow().full_counters, 0U);
  for (const uint64_t hash : hashes) EXPECT_EQ(filter.CountHash(hash), plain.CountHash(hash));
  // Readers, while half of the keys go.
  std::atomic<size_t> running{kThreads};
  std::atomic<uint64_t> lost{0}, absent{0};
  InThreads(kThreads + 1, [&](size_t t) {
    if (t < kThreads) {
      for (uint64_t i = 0; i < copies; ++i) absent += filter.RemoveHashBatch(std::span(hashes).first(half));
      --running;
      return;
    }
    do {
      for (size_t i = half; i < hashes.size(); ++i) lost += !filter.MayContainHash(hashes[i]);
    } while (running.load() != 0);
  });
  for (uint64_t i = 0; i < copies * kThreads; ++i) plain.RemoveHashBatch(std::span(hashes).first(half));
  EXPECT_EQ(lost, 0U);
  EXPECT_EQ(absent, 0U);
  const CountingFilter released = std::move(filter).Release();
  EXPECT_EQ(WordsOf(released), WordsOf(plain));
  EXPECT_EQ(released.InsertedCount(), plain.InsertedCount());
  EXPECT_EQ(released.Overflow().spilled_keys, plain.Overflow().spilled_keys);
  EXPECT_EQ(released.Overflow().spilled_counters, plain.Overflow().spilled_counters);
}

TEST_P(ConcurrentCountingTest, ACopyIsAFilterOfItsOwn) {
  CountingFilter start(FilterConfig::ForFpr(500, 0.02, layout()).WithSeed(9).WithKeyKind(KeyKind::kBytes), policy());
  for (int i = 0; i < 300; ++i) start.Add("one");
  const uint64_t expected = start.expected_keys();
  ConcurrentCountingFilter filter(std::move(start));
  filter.Add("two");
  const CountingFilter copy = filter.TryCopy().value();
  filter.Add("three");
  const CountingFilter later = std::move(filter).Release();
  EXPECT_EQ(copy.seed(), 9U);
  EXPECT_EQ(copy.key_kind(), KeyKind::kBytes);
  EXPECT_EQ(copy.expected_keys(), expected);
  EXPECT_EQ(copy.target_fpr(), 0.02);
  EXPECT_EQ(copy.overflow_policy(), policy());
  EXPECT_EQ(copy.layout(), layout());
  EXPECT_EQ(copy.target(), later.target());
  EXPECT_EQ(copy.Count("one"), later.Count("one"));
  EXPECT_TRUE(copy.MayContain("two"));
  EXPECT_FALSE(copy.MayContain("three"));
  EXPECT_EQ(copy.InsertedCount() + 1, later.InsertedCount());
}

// Merging what threads counted each for itself is counting together.
TEST_P(ConcurrentCountingTest, CopiesCanBeMerged) {
  ConcurrentCountingFilter first(Config(layout(), 50), policy()), second(Config(layout(), 50), policy());
  for (uint64_t key = 0; key < 100; ++key) (key % 2 == 0 ? first : second).Add(key);
  CountingFilter both = first.TryCopy().value();
  both.Merge(second.TryCopy().value());
  for (uint64_t key = 0; key < 100; ++key) EXPECT_TRUE(both.MayContain(key));
  EXPECT_EQ(both.InsertedCount(), 100U);
}

TEST(ConcurrentCounting, Errors) {
  CountingFilter filter(Config(Layout::kCounting4, 3));
  filter.Add("key");
  auto made = ConcurrentCountingFilter::Create(std::move(filter));
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE((*made)->MayContain("key"));
  // NOLINTBEGIN(bugprone-use-after-move)
  const auto none = ConcurrentCountingFilter::Create(std::move(filter));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(none.error().what()).find("moved from"), std::string::npos);
  EXPECT_THROW(ConcurrentCountingFilter{std::move(filter)}, Error);
  // NOLINTEND
  EXPECT_THROW(ConcurrentCountingFilter(FilterConfig::ForBits(512)), Error);
  EXPECT_THROW(ConcurrentCountingFilter(Config(Layout::kCounting4, 3), OverflowPolicy::kNone), Error);
}

static_assert(noexcept(std::declval<ConcurrentCountingFilter&>().Add("key")));
static_assert(noexcept(std::declval<ConcurrentCountingFilter&>().Remove(uint64_t{1})));
static_assert(noexcept(std::declval<const ConcurrentCountingFilter&>().Count(uint64_t{1})));
static_assert(noexcept(std::declval<const ConcurrentCountingFilter&>().MayContain("key")));

}  // namespace
}  // namespace bloomline
