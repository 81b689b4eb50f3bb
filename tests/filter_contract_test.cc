// What Filter promises to the compiler and to its caller's latency: which keys compile, what is noexcept, and that
// inserts and lookups allocate nothing.
#include <gtest/gtest.h>

#include <array>
#include <concepts>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/target.h"
#include "tests/allocation_counter.h"
#include "tests/test_util.h"

namespace bloomline {
namespace {

using test::Random;
using test::SmallConfig;

// ---- What must and what must not compile.
template <class K>
concept CanInsert = requires(Filter& filter, K key) {
  filter.Insert(key);
};
template <class K>
concept CanTryInsert = requires(Filter& filter, K key) {
  filter.TryInsert(key);
};
template <class K>
concept CanLookUp = requires(const Filter& filter, K key) {
  filter.MayContain(key);
};
template <class K>
inline constexpr bool kIsKey = CanInsert<K>&& CanTryInsert<K>&& CanLookUp<K>;
template <class K>
inline constexpr bool kIsNoKey = !CanInsert<K> && !CanTryInsert<K> && !CanLookUp<K>;

static_assert(kIsKey<uint64_t> && kIsKey<uint32_t> && kIsKey<unsigned> && kIsKey<unsigned long> &&
              kIsKey<unsigned long long> && kIsKey<size_t>);
static_assert(kIsKey<std::string> && kIsKey<std::string_view> && kIsKey<const char*> && kIsKey<char*> &&
              kIsKey<const std::string&> && kIsKey<decltype(("literal"))>);
static_assert(kIsNoKey<int> && kIsNoKey<long> && kIsNoKey<long long> && kIsNoKey<short> && kIsNoKey<int8_t>);
static_assert(kIsNoKey<char> && kIsNoKey<bool> && kIsNoKey<wchar_t> && kIsNoKey<char32_t>);
static_assert(kIsNoKey<uint8_t> && kIsNoKey<uint16_t>);
static_assert(kIsNoKey<float> && kIsNoKey<double> && kIsNoKey<long double>);
static_assert(kIsNoKey<std::nullptr_t> && kIsNoKey<void*> && kIsNoKey<const int*>);
static_assert(kIsNoKey<std::vector<uint64_t>> && kIsNoKey<std::optional<std::string>> && kIsNoKey<KeyKind>);

template <class Keys>
concept CanBatch = requires(Filter& filter, const Keys& keys, std::span<uint64_t> bits) {
  filter.InsertBatch(keys);
  filter.MayContainBatch(keys, bits);
};
static_assert(CanBatch<std::vector<uint64_t>> && CanBatch<std::vector<uint32_t>> &&
              CanBatch<std::vector<std::string>> && CanBatch<std::vector<std::string_view>> && CanBatch<BinaryColumn> &&
              CanBatch<std::array<uint64_t, 4>> && CanBatch<std::span<uint64_t>>);
static_assert(!CanBatch<std::vector<int64_t>> && !CanBatch<std::vector<int32_t>> && !CanBatch<std::vector<double>> &&
              !CanBatch<std::vector<float>> && !CanBatch<std::vector<uint16_t>> && !CanBatch<std::vector<bool>> &&
              !CanBatch<uint64_t> && !CanBatch<std::string>);

static_assert(!std::is_copy_constructible_v<Filter> && !std::is_copy_assignable_v<Filter>);
static_assert(std::is_nothrow_move_constructible_v<Filter> && std::is_nothrow_move_assignable_v<Filter>);
static_assert(!std::is_default_constructible_v<Filter> && !std::is_convertible_v<FilterConfig, Filter>);

static_assert(requires(Filter & f, const Filter& c, std::span<uint64_t> bits, std::span<const uint64_t> u64,
                       std::span<const uint32_t> u32, std::span<const std::string_view> views,
                       std::span<const std::string> strings, const BinaryColumn& column,
                       std::span<uint32_t> positions) {
  { f.Insert(uint64_t{}) }
  noexcept;
  { f.Insert(std::string_view()) }
  noexcept;
  { f.InsertHash(uint64_t{}) }
  noexcept;
  { f.TryInsert(uint32_t{}) }
  noexcept->std::same_as<bool>;
  { f.TryInsert("a") }
  noexcept->std::same_as<bool>;
  { f.TryInsertHash(uint64_t{}) }
  noexcept->std::same_as<bool>;
  { f.InsertBatch(u64) }
  noexcept;
  { f.InsertBatch(u32) }
  noexcept;
  { f.InsertBatch(views) }
  noexcept;
  { f.InsertBatch(strings) }
  noexcept;
  { f.InsertBatch(column) }
  noexcept;
  { f.InsertHashBatch(u64) }
  noexcept;
  { f.TryInsertBatch(u64, bits) }
  noexcept;
  { f.TryInsertBatch(u32, bits) }
  noexcept;
  { f.TryInsertBatch(views, bits) }
  noexcept;
  { f.TryInsertBatch(column, bits) }
  noexcept;
  { f.TryInsertHashBatch(u64, bits) }
  noexcept;
  { f.Clear() }
  noexcept;
  { c.MayContain(uint64_t{}) }
  noexcept->std::same_as<bool>;
  { c.MayContain(std::string_view()) }
  noexcept->std::same_as<bool>;
  { c.MayContainHash(uint64_t{}) }
  noexcept->std::same_as<bool>;
  { c.MayContainBatch(u64, bits) }
  noexcept;
  { c.MayContainBatch(views, bits) }
  noexcept;
  { c.MayContainBatch(column, bits) }
  noexcept;
  { c.MayContainHashBatch(u64, bits) }
  noexcept;
  { c.SelectBatch(u64, positions) }
  noexcept->std::same_as<size_t>;
  { c.SelectBatch(u64, std::span<const uint32_t>(positions), positions) }
  noexcept->std::same_as<size_t>;
  { c.EstimatedCount() }
  noexcept->std::same_as<double>;
  { c.PredictedFpr() }
  noexcept->std::same_as<double>;
  { c.MeasuredFillFpr() }
  noexcept->std::same_as<double>;
  { c.Saturated() }
  noexcept->std::same_as<bool>;
});

// ---- The hot path does not allocate, on any target.
TEST(FilterHotPath, AllocatesNothing) {
  const std::vector<uint64_t> keys = Random(3).Take(1000);
  const std::vector<uint32_t> narrow(1000, 5);
  std::vector<std::string> strings;
  for (size_t i = 0; i < 1000; ++i)
    strings.push_back("a string too long for the small string buffer " + std::to_string(i));
  const std::vector<std::string_view> views(strings.begin(), strings.end());
  const std::vector<int32_t> offsets = {0, 3, 9, 14};
  const BinaryColumn column(offsets, "abcdefghijklmn");
  std::vector<uint64_t> bitmap(16);
  std::vector<uint32_t> positions(1000);
  for (const std::string& target : SupportedTargets()) {
    for (const auto& [layout, k] : test::AllLayouts()) {
      Filter filter(SmallConfig(layout, k, 200, target));
      const size_t before = allocations;
      filter.Insert(keys[0]);
      filter.Insert(views[0]);
      (void)filter.TryInsert(keys[1]);
      (void)filter.TryInsert("literal");
      filter.InsertBatch(keys);
      filter.InsertBatch(narrow);
      filter.InsertBatch(views);
      filter.InsertBatch(strings);
      filter.InsertBatch(column);
      filter.InsertHashBatch(keys);
      filter.TryInsertBatch(keys, bitmap);
      filter.TryInsertBatch(narrow, bitmap);
      filter.TryInsertBatch(views, bitmap);
      filter.TryInsertBatch(column, bitmap);
      filter.TryInsertHashBatch(keys, bitmap);
      filter.MayContainBatch(keys, bitmap);
      filter.MayContainBatch(narrow, bitmap);
      filter.MayContainBatch(views, bitmap);
      filter.MayContainBatch(strings, bitmap);
      filter.MayContainBatch(column, bitmap);
      filter.MayContainHashBatch(keys, bitmap);
      size_t hits = filter.SelectBatch(keys, positions);
      hits = filter.SelectBatch(keys, std::span<const uint32_t>(positions).first(hits), positions);
      hits += filter.SelectBatch(views, std::span<const uint32_t>(positions).first(hits), positions);
      hits += filter.SelectBatch(column, positions) + filter.SelectHashBatch(keys, positions);
      const bool found = filter.MayContain(keys[0]) && filter.MayContain(views[0]);
      filter.Clear();
      ASSERT_EQ(allocations, before) << target << " " << LayoutNameWithK(layout, k);
      EXPECT_TRUE(found);
      EXPECT_GE(hits, 1000u);
    }
  }
  const size_t before = allocations;
  EXPECT_NE(std::make_unique<int>(1), nullptr);
  EXPECT_EQ(allocations, before + 1) << "the counter counts";
}

}  // namespace
}  // namespace bloomline
