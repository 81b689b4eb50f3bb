// What CountingFilter promises to the compiler and to its caller's latency: which keys compile, what is noexcept, that
// nothing is allocated under saturate and reject, and that nothing is changed where memory is not to be had under
// spill.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bloomline/concurrent_counting_filter.h"
#include "bloomline/counting_filter.h"
#include "tests/allocation_counter.h"
#include "tests/counting_util.h"
#include "tests/snapshot_util.h"

namespace bloomline {
namespace {

using test::Random;
using test::WordsOf;

// ---- What the calls promise.

static_assert(noexcept(std::declval<CountingFilter&>().Add(uint64_t{1})));
static_assert(noexcept(std::declval<CountingFilter&>().Add("key")));
static_assert(noexcept(std::declval<CountingFilter&>().Remove(uint64_t{1})));
static_assert(noexcept(std::declval<CountingFilter&>().Remove("key")));
static_assert(noexcept(std::declval<const CountingFilter&>().Count(uint64_t{1})));
static_assert(noexcept(std::declval<const CountingFilter&>().Count("key")));
static_assert(noexcept(std::declval<const CountingFilter&>().MayContain("key")));
static_assert(noexcept(std::declval<CountingFilter&>().AddHashBatch({})));
static_assert(noexcept(std::declval<CountingFilter&>().RemoveHashBatch({})));
static_assert(noexcept(std::declval<CountingFilter&>().Clear()));
static_assert(noexcept(std::declval<const CountingFilter&>().Overflow()));
static_assert(!std::is_copy_constructible_v<CountingFilter> && !std::is_copy_assignable_v<CountingFilter>);
static_assert(std::is_nothrow_move_constructible_v<CountingFilter> &&
              std::is_nothrow_move_assignable_v<CountingFilter>);

template <class K>
concept CanAdd = requires(CountingFilter& filter, K key) {
  filter.Add(key);
};
static_assert(CanAdd<uint64_t> && CanAdd<uint32_t> && CanAdd<std::string> && CanAdd<const char*>);
static_assert(!CanAdd<int> && !CanAdd<double> && !CanAdd<bool> && !CanAdd<std::nullptr_t>);

TEST(CountingContract, NothingIsAllocatedUnderSaturateAndReject) {
  Random random(1);
  const std::vector<uint64_t> keys = random.Take(1000);
  std::vector<uint32_t> narrow;
  std::vector<std::string> texts;
  std::vector<std::string_view> views;
  for (const uint64_t key : keys) {
    narrow.push_back(static_cast<uint32_t>(key));
    texts.push_back(std::to_string(key));
  }
  std::string bytes;
  std::vector<int32_t> offsets = {0};
  for (const std::string& text : texts) {
    views.push_back(text);
    bytes += text;
    offsets.push_back(static_cast<int32_t>(bytes.size()));
  }
  const BinaryColumn column(std::span<const int32_t>(offsets), bytes);
  const std::span<const std::string> strings(texts);
  const std::span<const std::string_view> string_views(views);
  std::vector<uint64_t> bitmap(test::BitmapWords(keys.size()));
  std::vector<uint32_t> counts(keys.size());
  for (const Layout layout : test::kCountingLayouts) {
    for (const OverflowPolicy policy : test::kPolicies) {
      CountingFilter filter(test::SmallConfig(layout, 8, 2), policy);
      const size_t before = allocations;
      for (int round = 0; round < 3; ++round) {
        for (const uint64_t key : keys) filter.Add(key);
        for (const std::string& text : texts) filter.Add(text);
        filter.AddBatch(keys, bitmap);
        filter.AddBatch(narrow, bitmap);
        filter.AddBatch(strings, bitmap);
        filter.AddBatch(string_views);
        filter.AddBatch(column, bitmap);
        filter.AddHashBatch(keys);
        for (const uint64_t key : keys) counts[0] += static_cast<uint32_t>(filter.Count(key));
        filter.CountBatch(keys, counts);
        filter.CountBatch(narrow, counts);
        filter.CountBatch(strings, counts);
        filter.CountBatch(column, counts);
        filter.MayContainBatch(keys, bitmap);
        for (const uint64_t key : keys) filter.Remove(key);
        filter.RemoveBatch(keys, bitmap);
        filter.RemoveBatch(narrow, bitmap);
        filter.RemoveBatch(strings, bitmap);
        filter.RemoveBatch(string_views);
        filter.RemoveBatch(column, bitmap);
        filter.RemoveHashBatch(keys);
        (void)filter.Overflow();
      }
      filter.Clear();
      if (policy == OverflowPolicy::kSpill) {
        EXPECT_GT(allocations, before) << "the counting of allocations does not work";
      } else {
        EXPECT_EQ(allocations, before) << LayoutName(layout, 8) << " " << OverflowPolicyName(policy);
      }
    }
  }
}

// Runs `body` with its allocation number 0, 1, 2, … failing, each time once, until it does without that one. Returns
// how many failed.
size_t FailEachAllocation(const std::function<void()>& body) {
  for (size_t n = 0; n < 1000; ++n) {
    const size_t at = allocations + n;
    failing = at;
    body();
    failing = ~size_t{0};
    if (allocations <= at) return n;
  }
  ADD_FAILURE() << "no end of allocations";
  return 0;
}

CountingFilter FullFilter() {
  CountingFilter filter(test::SmallConfig(Layout::kCounting4, 8, 500), OverflowPolicy::kSpill);
  for (uint64_t key = 0; key < 4; ++key) {
    for (int i = 0; i < 15; ++i) filter.Add(key);
  }
  return filter;
}

// Each of the eight entries of a key's counters in turn cannot be made: nothing of the key is left behind.
TEST(CountingMemory, AddUnderSpillIsRefusedAsAWhole) {
  for (const bool batch : {false, true}) {
    for (size_t n = 0;; ++n) {
      CountingFilter filter = FullFilter();
      const std::vector<uint64_t> before = WordsOf(filter);
      const std::vector<uint64_t> keys = {100, 1, 101};
      std::vector<uint64_t> bitmap(1);
      const size_t start = allocations;
      failing = start + n;
      const bool added = batch ? filter.AddBatch(keys, bitmap) == 0 : filter.Add(uint64_t{1});
      failing = ~size_t{0};
      if (added) {
        EXPECT_LE(allocations - start, n);
        EXPECT_GE(n, 8U) << "entries of all eight counters were to fail";
        EXPECT_EQ(filter.Overflow().spilled_counters, 8U);
        break;
      }
      EXPECT_EQ(filter.Overflow().spilled_counters, 0U);
      EXPECT_EQ(filter.Overflow().spilled_keys, 0U);
      EXPECT_EQ(filter.Count(uint64_t{1}), 15U);
      if (batch) {
        EXPECT_EQ(bitmap[0], 0b010U);
        EXPECT_EQ(filter.InsertedCount(), 62U);
        EXPECT_TRUE(filter.Remove(uint64_t{100}));
        EXPECT_TRUE(filter.Remove(uint64_t{101}));
      }
      EXPECT_EQ(filter.InsertedCount(), 60U);
      EXPECT_EQ(WordsOf(filter), before);
      ASSERT_LT(n, 100U);
    }
  }
}

TEST(CountingMemory, ConcurrentAddUnderSpillIsRefusedAsAWhole) {
  for (size_t n = 0;; ++n) {
    ConcurrentCountingFilter filter(FullFilter());
    const std::vector<uint64_t> before = WordsOf(filter.TryCopy().value());
    failing = allocations + n;
    const bool added = filter.Add(uint64_t{1});
    failing = ~size_t{0};
    if (added) {
      EXPECT_GE(n, 8U);
      break;
    }
    EXPECT_EQ(filter.Count(uint64_t{1}), 15U);
    EXPECT_EQ(filter.InsertedCount(), 60U);
    const CountingFilter now = std::move(filter).Release();
    EXPECT_EQ(WordsOf(now), before);
    EXPECT_EQ(now.Overflow().spilled_keys, 0U);
    ASSERT_LT(n, 100U);
  }
}

// Calls that return a Status: kOutOfMemory and the filter as it was, or, where it was not the memory of the filter,
// success.
TEST(CountingMemory, WholeFiltersUnderSpill) {
  CountingFilter filter = FullFilter();
  for (int i = 0; i < 5; ++i) filter.Add(uint64_t{2});
  const CountingFilter other = filter.Clone();
  std::vector<std::byte> bytes = test::Serialized(filter);
  const std::vector<uint64_t> before = WordsOf(filter);
  const uint64_t spilled = filter.Overflow().spilled_keys;
  const test::TempDir folder;
  const std::string path = folder / "f";
  filter.Save(path);
  ConcurrentCountingFilter concurrent(filter.Clone());
  bool makes_storage = true;
  const auto expect = [&](const char* what, const std::function<Status()>& call) {
    SCOPED_TRACE(what);
    size_t failed = 0;
    FailEachAllocation([&] {
      Status status;
      try {
        status = call();
      } catch (const std::bad_alloc&) {  // only where it would be of a few bytes that all allocations make
        EXPECT_TRUE(makes_storage) << "thrown instead of returned";
        status = Error(ErrorCode::kOutOfMemory, "");
      }
      failing = ~size_t{0};
      if (status.ok()) return;
      ++failed;
      EXPECT_EQ(status.error().code(), ErrorCode::kOutOfMemory) << status.error().what();
      EXPECT_EQ(WordsOf(filter), before);
      EXPECT_EQ(filter.Overflow().spilled_keys, spilled);
      EXPECT_EQ(filter.InsertedCount(), 65U);
    });
    EXPECT_GT(failed, 0U);
  };
  const auto status_of = [](const auto& result) -> Status {
    if (result.ok()) return {};
    return result.error();
  };
  expect("clone", [&] { return status_of(filter.TryClone()); });
  expect("concurrent copy", [&] { return status_of(concurrent.TryCopy()); });
  makes_storage = false;
  expect("serialize", [&] { return status_of(filter.TrySerializeTo(bytes)); });
  expect("save", [&] { return filter.TrySave(path); });
  EXPECT_EQ(test::ReadBytes(path), bytes);
  EXPECT_EQ(folder.Names().size(), 1U);  // no temporary file is left
  expect("merge", [&] {
    const Status status = filter.TryMerge(other);
    failing = ~size_t{0};
    if (status.ok()) filter = other.Clone();  // for the next turn
    return status;
  });
  (void)concurrent.TryCopy().value();  // its locks are free
}

}  // namespace
}  // namespace bloomline
