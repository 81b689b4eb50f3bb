// As allocation_failure_test, for counting and concurrent filters and for snapshots.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bloomline/concurrent_counting_filter.h"
#include "bloomline/concurrent_filter.h"
#include "bloomline/counting_filter.h"
#include "bloomline/filter.h"
#include "tests/allocation_failure.h"

namespace bloomline {
namespace {

using test::FailChange;
using test::FailEverySite;
using test::Filled;
using test::Keys;
using test::kWrongAnswer;
using test::Operation;
using test::Placed;
using test::StatusOf;
using test::Thrown;

// ---- Counting filters.

CountingFilter Counting(OverflowPolicy policy, uint64_t seed = 0) {
  CountingFilter filter(FilterConfig::ForBits(100'000, 8, Layout::kCounting4).WithSeed(seed), policy);
  filter.AddBatch(Keys(0, 1000));
  for (int i = 0; i < 20; ++i) filter.AddBatch(Keys(0, 50));  // beyond the maximum
  return filter;
}

TEST(AllocationFailure, CountingFilters) {
  const CountingFilter spill = Counting(OverflowPolicy::kSpill);
  const CountingFilter reject = Counting(OverflowPolicy::kReject);
  const CountingFilter stranger = Counting(OverflowPolicy::kSpill, 0x123456789abcdef);
  ASSERT_GT(spill.Overflow().spilled_counters, 0U);
  const FilterConfig config = FilterConfig::ForBits(100'000, 8, Layout::kCounting8);
  FailEverySite("CountingFilter", [&] { return StatusOf(CountingFilter::Create(config, OverflowPolicy::kSpill)); });
  FailEverySite("CountingFilter, no policy",
                [&] { return StatusOf(CountingFilter::Create(config, static_cast<OverflowPolicy>(9))); });
  FailEverySite("CountingFilter, not counting",
                [&] { return Thrown([&] { const CountingFilter filter(FilterConfig::ForBits(512)); }); });
  FailEverySite("CountingFilter, Clone", [&] { return StatusOf(spill.TryClone()); });
  FailEverySite("CountingFilter, ToFilter", [&] { return StatusOf(spill.TryToFilter()); });
  FailEverySite("CountingFilter, ToFilter, thrown", [&] { return Thrown([&] { (void)spill.ToFilter(); }); });
  const auto merge = [](const CountingFilter& with) {
    return [&with](CountingFilter& filter) {
      const uint64_t spilled = filter.Overflow().spilled_keys;
      Status merged = filter.TryMerge(with);
      return merged.ok() || filter.Overflow().spilled_keys == spilled ? merged : Status(kWrongAnswer);
    };
  };
  FailChange<CountingFilter>("CountingFilter, Merge, spill", spill, merge(spill));
  FailChange<CountingFilter>("CountingFilter, Merge, full", reject, merge(reject));
  FailChange<CountingFilter>("CountingFilter, Merge, mismatch", spill, merge(stranger));
  // An Add that is refused for want of memory leaves no trace.
  FailChange<CountingFilter>("CountingFilter, Add, spill", spill, [](CountingFilter& filter) {
    static const Error refused(ErrorCode::kOutOfMemory, "");
    const OverflowReport before = filter.Overflow();
    if (filter.Add(uint64_t{3})) return Status();
    const OverflowReport after = filter.Overflow();
    const bool same = before.spilled_keys == after.spilled_keys && before.spilled_counters == after.spilled_counters;
    return Status(same ? refused : kWrongAnswer);
  });
  CountingFilter fresh(FilterConfig::ForBits(512, 8, Layout::kCounting4), OverflowPolicy::kSpill);
  for (int i = 0; i < 15; ++i) fresh.Add(uint64_t{1});
  FailChange<CountingFilter>("CountingFilter, Add, first spill", fresh, [](CountingFilter& filter) {
    static const Error refused(ErrorCode::kOutOfMemory, "");
    if (filter.Add(uint64_t{1})) return filter.Count(uint64_t{1}) == 16 ? Status() : Status(kWrongAnswer);
    return Status(filter.Count(uint64_t{1}) == 15 ? refused : kWrongAnswer);
  });
}

TEST(AllocationFailure, ConcurrentCountingFilters) {
  for (const OverflowPolicy policy : {OverflowPolicy::kSaturate, OverflowPolicy::kSpill}) {
    const CountingFilter base = Counting(policy);
    std::optional<CountingFilter> given;
    Operation create;
    create.prepare = [&] { given.emplace(base.Clone()); };
    create.run = [&] { return StatusOf(ConcurrentCountingFilter::Create(*std::move(given))); };
    create.finish = [&] { given.reset(); };
    FailEverySite("ConcurrentCountingFilter", create);
    const auto made = ConcurrentCountingFilter::Create(base.Clone());
    const ConcurrentCountingFilter& filter = *made.value();
    FailEverySite("ConcurrentCountingFilter, TryCopy", [&] {
      const Result<CountingFilter> copy = filter.TryCopy();
      if (!copy.ok()) return Status(copy.error());
      return copy->Count(uint64_t{3}) == filter.Count(uint64_t{3}) ? Status() : Status(kWrongAnswer);
    });
  }
  FailEverySite("ConcurrentCountingFilter, thrown", [] {
    return Thrown([] { const ConcurrentCountingFilter filter(FilterConfig::ForBits(100'000, 8, Layout::kCounting4)); });
  });
}

TEST(AllocationFailure, ConcurrentFilters) {
  const FilterConfig config = FilterConfig::ForBits(100'000);
  const Filter base = Filled(config, 0, 1000);
  FailEverySite("ConcurrentFilter", [&] { return StatusOf(ConcurrentFilter::Create(config)); });
  std::optional<Filter> given;
  Operation create;
  create.prepare = [&] { given.emplace(base.Clone()); };
  create.run = [&] { return StatusOf(ConcurrentFilter::Create(*std::move(given))); };
  create.finish = [&] { given.reset(); };
  FailEverySite("ConcurrentFilter, of a filter", create);
  const auto made = ConcurrentFilter::Create(base.Clone());
  FailEverySite("ConcurrentFilter, TryCopy", [&] {
    const Result<Filter> copy = (*made)->TryCopy();
    if (!copy.ok()) return Status(copy.error());
    return copy->MayContain(uint64_t{3}) ? Status() : Status(kWrongAnswer);
  });
}

// ---- Snapshots.

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class SnapshotAllocation : public testing::Test {
 protected:
  SnapshotAllocation() {
    std::string name = testing::TempDir() + "bloomline-allocation-XXXXXX";
    directory_ = mkdtemp(name.data());
    path_ = directory_ + "/a file with a long name.bloom";
  }
  ~SnapshotAllocation() override { std::filesystem::remove_all(directory_); }

  // Saving over an old file: that or the new one is there afterwards, as the outcome says, and nothing else.
  void FailSave(const std::string& name, const FilterReader& filter, const std::function<Status()>& save) {
    const std::string target = directory_ + "/saved.bloom";
    filter.Save(target);
    const std::string new_content = Content(target);
    Operation operation;
    operation.prepare = [&] { std::ofstream(target, std::ios::binary) << "old"; };
    operation.run = save;
    operation.check = [&](bool ok) {
      EXPECT_TRUE(Content(target) == (ok ? new_content : "old"));
      for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
        EXPECT_TRUE(entry.path() == target || entry.path() == path_) << entry.path();
      }
    };
    FailEverySite(name, operation);
  }

  std::string directory_;
  std::string path_;
};

TEST_F(SnapshotAllocation, Save) {
  const Filter filter = Filled(FilterConfig::ForBits(100'000), 0, 5000);
  const CountingFilter spill = Counting(OverflowPolicy::kSpill);
  const std::string target = directory_ + "/saved.bloom";
  FailSave("Save", filter, [&] { return filter.TrySave(target); });
  FailSave("Save, thrown", filter, [&] { return Thrown([&] { filter.Save(target); }); });
  FailSave("Save, counting", spill, [&] { return spill.TrySave(target); });
  std::filesystem::create_symlink("saved.bloom", path_);
  FailSave("Save, through a link", filter, [&] { return filter.TrySave(path_); });
  const std::string nowhere = directory_ + "/none/file.bloom";
  FailEverySite("Save, no such directory", [&] { return filter.TrySave(nowhere); });
  FailEverySite("Save, no name", [&] { return filter.TrySave(""); });
}

TEST_F(SnapshotAllocation, Load) {
  const Filter filter = Filled(FilterConfig::ForBits(100'000), 0, 5000);
  const std::vector<uint64_t> keys = Keys(0, 5000);
  filter.Save(path_);
  FailEverySite("Load", [&] {
    const Result<Filter> loaded = Filter::TryLoad(path_);
    if (!loaded.ok()) return Status(loaded.error());
    return std::equal(loaded->words().begin(), loaded->words().end(), filter.words().begin()) ? Status()
                                                                                              : Status(kWrongAnswer);
  });
  FailEverySite("Load, thrown", [&] { return Thrown([&] { (void)Filter::Load(path_); }); });
  const MemoryPolicy replicated = Placed(Placement::kReplicate);
  FailEverySite("Load, replicated", [&] { return StatusOf(Filter::TryLoad(path_, replicated)); });
  FailEverySite("Map", [&] { return StatusOf(FilterView::TryMap(path_)); });
  FailEverySite("Map, header only", [&] { return StatusOf(FilterView::TryMap(path_, Verify::kHeaderOnly)); });
  FailEverySite("Map, thrown", [&] { return Thrown([&] { (void)FilterView::Map(path_); }); });
  FailEverySite("Load, another kind", [&] { return StatusOf(CountingFilter::TryLoad(path_)); });
  const std::string nothing = directory_ + "/none";
  FailEverySite("Load, no file", [&] { return StatusOf(Filter::TryLoad(nothing)); });
  FailEverySite("Load, a directory", [&] { return StatusOf(Filter::TryLoad(directory_)); });
  std::string damaged = Content(path_);
  damaged[damaged.size() - 9] = static_cast<char>(damaged[damaged.size() - 9] ^ 1);
  std::ofstream(path_, std::ios::binary) << damaged;
  FailEverySite("Load, damaged", [&] { return StatusOf(Filter::TryLoad(path_)); });
  FailEverySite("Map, damaged", [&] { return StatusOf(FilterView::TryMap(path_)); });
  const CountingFilter spill = Counting(OverflowPolicy::kSpill);
  spill.Save(path_);
  FailEverySite("Load, counting", [&] {
    const Result<CountingFilter> loaded = CountingFilter::TryLoad(path_);
    if (!loaded.ok()) return Status(loaded.error());
    return loaded->Count(uint64_t{3}) == spill.Count(uint64_t{3}) ? Status() : Status(kWrongAnswer);
  });
}

TEST_F(SnapshotAllocation, Bytes) {
  const Filter filter = Filled(FilterConfig::ForBits(100'000), 0, 5000);
  const CountingFilter spill = Counting(OverflowPolicy::kSpill);
  std::vector<std::byte> bytes(filter.SerializedBytes());
  FailEverySite("SerializeTo", [&] { return StatusOf(filter.TrySerializeTo(bytes)); });
  FailEverySite("SerializeTo, too short", [&] { return StatusOf(filter.TrySerializeTo(std::span(bytes).first(9))); });
  FailEverySite("Deserialize", [&] { return StatusOf(Filter::TryDeserialize(bytes)); });
  FailEverySite("Deserialize, thrown", [&] { return Thrown([&] { (void)Filter::Deserialize(bytes); }); });
  FailEverySite("Deserialize, cut",
                [&] { return StatusOf(Filter::TryDeserialize(std::span(bytes).first(bytes.size() - 1))); });
  FailEverySite("Wrap, misaligned", [&] { return StatusOf(FilterView::TryWrap(std::span(bytes).subspan(1))); });
  std::vector<std::byte> spilled(spill.SerializedBytes());
  FailEverySite("SerializeTo, counting", [&] { return StatusOf(spill.TrySerializeTo(spilled)); });
  FailEverySite("Deserialize, counting", [&] { return StatusOf(CountingFilter::TryDeserialize(spilled)); });
}

}  // namespace
}  // namespace bloomline
