// What happens when memory runs out, at every place where any is asked for: Error(kOutOfMemory) and nothing else,
// nothing leaked, everything as it was.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bloomline/concurrent_counting_filter.h"
#include "bloomline/counting_filter.h"
#include "bloomline/filter.h"
#include "bloomline/fpr_model.h"
#include "bloomline/target.h"
#include "bloomline/thread_pool.h"
#include "bloomline/topology.h"
#include "tests/allocation_failure.h"
#include "tests/child_process.h"

namespace bloomline {
namespace {

using test::FailChange;
using test::FailEverySite;
using test::Failing;
using test::FailingMemory;
using test::Filled;
using test::Keys;
using test::kWrongAnswer;
using test::Placed;
using test::StatusOf;
using test::Thrown;

// ---- First uses: what the process makes once. Each failure in a process of its own, which has made nothing yet; these
// tests come first.

// 0: the operation got through without a failure; 1: it failed as it should, and did the same as ever when there was
// memory again; others say what is wrong.
int ColdRun(const std::function<Status()>& operation, int64_t nth, Failing failing, bool malloc) {
  const pid_t child = fork();
  if (child == 0) {
    const test::Outcome outcome = test::RunFailing(operation, nth, failing, malloc);
    int result = outcome.fired ? 1 : 0;
    if (outcome.code != test::kOk && outcome.code != static_cast<int>(ErrorCode::kOutOfMemory)) result = 2;
    if (outcome.other_exception) result = 3;
    if (result < 2 && !operation().ok()) result = 4;
    test::ExitChild(result);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 5;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

// `step`: every how many sites; beyond the first 32, where there are thousands.
void FailFirstUse(const char* name, const std::function<Status()>& operation, bool malloc, int64_t step = 1) {
  SCOPED_TRACE(name);
  for (const Failing failing : {Failing::kOne, Failing::kFrom}) {
    int64_t nth = 1;
    for (;; nth += nth < 32 ? 1 : step) {
      ASSERT_LT(nth, test::kMostSites);
      const int result = ColdRun(operation, nth, failing, malloc);
      EXPECT_LT(result, 2) << (failing == Failing::kOne ? "only allocation " : "from allocation ") << nth;
      if (result == 0) break;
    }
    std::printf("%-44s %s: %lld places\n", name, failing == Failing::kOne ? "one" : "all",
                static_cast<long long>(nth - 1));
    EXPECT_GT(nth, 1);
  }
}

TEST(FirstUse, Filter) {
  FailFirstUse(
      "first filter",
      [] {
        Result<FilterConfig> config = FilterConfig::TryForBits(100'000);
        if (!config.ok()) return Status(config.error());
        Result<Filter> filter = Filter::Create(*config);
        if (!filter.ok()) return Status(filter.error());
        filter->Insert(uint64_t{7});
        return filter->MayContain(uint64_t{7}) && !filter->MayContain(uint64_t{8}) ? Status() : Status(kWrongAnswer);
      },
      false);
}

TEST(FirstUse, AutoConfig) {
  FailFirstUse(
      "first TryForFpr",
      [] {
        Result<FilterConfig> config = FilterConfig::TryForFpr(1'000'000, 0.01);
        if (!config.ok()) return Status(config.error());
        return config->layout() == Layout::kSplit512 ? Status() : Status(kWrongAnswer);
      },
      true, 17);
}

// noexcept: never an error, with or without memory, and the same figure.
TEST(FirstUse, PredictedFpr) {
  struct Case {
    Layout layout;
    int k;
    uint64_t blocks, n;
  };
  static constexpr Case kCases[] = {{Layout::kSplit512, 8, 1000, 50'000},
                                    {Layout::kLine512, 7, 1, 60},
                                    {Layout::kWord64, 5, 1 << 20, 3'000'000'000},
                                    {Layout::kSplit256, 8, 1000, 1'000'000}};
  FailFirstUse(
      "first PredictedFpr",
      [] {
        std::array<double, std::size(kCases)> now{};
        for (size_t i = 0; i < now.size(); ++i) {
          const Case& c = kCases[i];
          now[i] = PredictedFpr(c.layout, c.k, c.blocks, c.n) / PredictedFprAt(c.layout, c.k, 9.5);
        }
        static std::optional<std::array<double, std::size(kCases)>> first;
        if (!first) {
          first = now;
          return Status();
        }
        for (size_t i = 0; i < now.size(); ++i) {
          if (!(std::abs(now[i] / (*first)[i] - 1) < 1e-12)) return Status(kWrongAnswer);
        }
        return Status();
      },
      true, 5);
}

// ---- Configurations and names: pure arithmetic, and the texts of errors.

TEST(AllocationFailure, Configurations) {
  const auto config = [](const Result<FilterConfig>& result) { return StatusOf(result); };
  FailEverySite("TryForFpr", [&] { return config(FilterConfig::TryForFpr(1'000'000, 0.01)); });
  FailEverySite("TryForFpr, no keys", [&] { return config(FilterConfig::TryForFpr(0, 0.01)); });
  FailEverySite("TryForFpr, NaN", [&] { return config(FilterConfig::TryForFpr(1, std::nan(""))); });
  FailEverySite("TryForFpr, below the floor", [&] { return config(FilterConfig::TryForFpr(1 << 30, 1e-12)); });
  FailEverySite("TryForFpr, unreachable",
                [&] { return config(FilterConfig::TryForFpr(uint64_t{1} << 40, 1e-6, Layout::kLine512, 1)); });
  FailEverySite("TryForBits", [&] { return config(FilterConfig::TryForBits(1 << 20)); });
  FailEverySite("TryForBits, too many", [&] { return config(FilterConfig::TryForBits(~uint64_t{0})); });
  FailEverySite("TryForBits, k = 3", [&] { return config(FilterConfig::TryForBits(512, 3)); });
  FailEverySite("TryForBits, auto", [&] { return config(FilterConfig::TryForBits(512, 3, Layout::kAuto)); });
  FailEverySite("TryForBits, no layout",
                [&] { return config(FilterConfig::TryForBits(512, 8, static_cast<Layout>(99))); });
  FailEverySite("TryForBitsPerKey", [&] { return config(FilterConfig::TryForBitsPerKey(1'000'000, 12.5)); });
  FailEverySite("TryForBitsPerKey, too few", [&] { return config(FilterConfig::TryForBitsPerKey(10, 0.5)); });
  FailEverySite("ForFpr", [] { return Thrown([] { (void)FilterConfig::ForFpr(1'000'000, 0.001); }); });
  FailEverySite("ForBits, none", [] { return Thrown([] { (void)FilterConfig::ForBits(0); }); });
  const FilterConfig chosen = FilterConfig::ForFpr(1'000'000, 0.001);  // its reason is a long text
  FailEverySite("WithSeed", [&] { return Thrown([&] { (void)chosen.WithSeed(3).WithKeyKind(KeyKind::kU64); }); });
  FailEverySite("WithTarget", [&] { return Thrown([&] { (void)chosen.WithTarget("a name that is no target's"); }); });
  FailEverySite("TryParseLayout, unknown", [] { return StatusOf(TryParseLayout("no layout's name")); });
  FailEverySite("TryForceTarget, unknown", [] { return TryForceTarget("a name that is no target's"); });
  FailEverySite("TryForceTarget", [] { return TryForceTarget("best"); });
  FailEverySite("TryChosenTarget", [] { return StatusOf(TryChosenTarget()); });
  FailEverySite("SupportedTargets", [] { return Thrown([] { (void)SupportedTargets(); }); });
  FailEverySite("BlocksForFpr",
                [] { return Thrown([] { (void)BlocksForFpr(Layout::kLine512, 7, 1'000'000, 0.01); }); });
  FailEverySite("ClassicFprExact", [] { return Thrown([] { (void)ClassicFprExact(1000, 10'000, 7); }); });
  FailEverySite("ContentRelativeDeviation",
                [] { return Thrown([] { (void)ContentRelativeDeviation(Layout::kWord64, 5, 1000, 50'000); }); });
}

TEST(AllocationFailure, Columns) {
  static constexpr int32_t kGood[] = {0, 3, 3, 8};
  static constexpr int64_t kBad[] = {0, 3, 2, 8};
  FailEverySite("BinaryColumn", [] { return StatusOf(BinaryColumn::Create(kGood, "abcdefgh")); });
  FailEverySite("BinaryColumn, descending", [] { return StatusOf(BinaryColumn::Create(kBad, "abcdefgh")); });
  FailEverySite("BinaryColumn, thrown", [] { return Thrown([] { (void)BinaryColumn(kBad, "abcdefgh"); }); });
}

TEST(AllocationFailure, Topologies) {
  const std::string good = "numa:2 core:2 pu:2";
  const std::string bad = "this is none of hwloc's notation";
  FailEverySite(
      "Topology, made up",
      [&] {
        const auto topology = Topology::Synthetic(good);
        if (!topology.ok()) return Status(topology.error());
        return (*topology)->nodes().size() == 2 && (*topology)->cores().size() == 4 ? Status() : Status(kWrongAnswer);
      },
      false);
  FailEverySite(
      "Topology, no notation", [&] { return StatusOf(Topology::Synthetic(bad)); }, false);
  const auto topology = Topology::Synthetic(good).value();
  FailEverySite("ChoosePlacement", [&] { return Thrown([&] { (void)ChoosePlacement(*topology, 1 << 30); }); });
}

// ---- Making filters.

Status MakeAndUse(const FilterConfig& config) {
  Result<Filter> filter = Filter::Create(config);
  if (!filter.ok()) return filter.error();
  filter->Insert(uint64_t{7});
  return filter->MayContain(uint64_t{7}) && !filter->MayContain(uint64_t{8}) ? Status() : Status(kWrongAnswer);
}

TEST(AllocationFailure, Create) {
  const auto create = [](const char* name, const FilterConfig& config) {
    FailEverySite(name, [config] { return MakeAndUse(config); });
  };
  const FilterConfig small = FilterConfig::ForBits(100'000);
  const FilterConfig medium = FilterConfig::ForBits(uint64_t{5} << 23, 7, Layout::kLine512);  // 5 MiB
  create("Create, 12 KB", small);
  create("Create, 5 MiB", medium);
  create("Create, 64 MiB", FilterConfig::ForBits(uint64_t{64} << 23));
  create("Create, replicated", medium.WithMemory(Placed(Placement::kReplicate)));
  create("Create, partitioned", medium.WithMemory(Placed(Placement::kPartition)));
  create("Create, interleaved", medium.WithMemory(Placed(Placement::kInterleave)));
  MemoryPolicy policy;
  policy.pages = Pages::kHuge2MiB;
  create("Create, 2 MiB pages", medium.WithMemory(policy));
  policy.lazy = true;
  create("Create, lazy", medium.WithMemory(policy));
  create("Create, no such target", small.WithTarget("a name that is no target's"));
  create("Create, counting layout", FilterConfig::ForBits(512, 8, Layout::kCounting4));
  policy = {};
  policy.placement = Placement::kBind;
  policy.node = 77;
  create("Create, no such node", small.WithMemory(policy));
  create("Create, larger than memory", FilterConfig::ForBits(uint64_t{512} * 0xffffffff));
  FailEverySite("Filter, thrown", [small] { return Thrown([&] { const Filter filter(small); }); });
  FailEverySite("Filter, no such target, thrown", [small] {
    return Thrown([&] { const Filter filter(small.WithTarget("a name that is no target's")); });
  });
}

// ---- Filters that exist.

TEST(AllocationFailure, WholeFilters) {
  const FilterConfig config = FilterConfig::ForBits(200'000, 6, Layout::kSector512z2);
  const Filter base = Filled(config, 0, 5000);
  const Filter other = Filled(config, 4000, 5000);
  const Filter stranger = Filled(config.WithSeed(0x123456789abcdef), 4000, 5000);
  FailEverySite("Clone", [&] { return StatusOf(base.TryClone()); });
  FailEverySite("Clone, thrown", [&] { return Thrown([&] { (void)base.Clone(); }); });
  const Filter replicated = Filled(config.WithMemory(Placed(Placement::kReplicate)), 0, 5000);
  FailEverySite("Clone, replicated", [&] { return StatusOf(replicated.TryClone()); });
  FailChange<Filter>("Merge", base, [&](Filter& filter) { return filter.TryMerge(other); });
  FailChange<Filter>("Merge, mismatch", base, [&](Filter& filter) { return filter.TryMerge(stranger); });
  FailChange<Filter>("Merge, thrown", base, [&](Filter& filter) { return Thrown([&] { filter.Merge(stranger); }); });
  FailChange<Filter>("Intersect", base, [&](Filter& filter) { return filter.TryIntersect(other); });
  FailChange<Filter>("Intersect, mismatch", base, [&](Filter& filter) { return filter.TryIntersect(stranger); });
  FailEverySite("memory()", [&] { return Thrown([&] { (void)base.memory(); }); });
  const Filter large = Filled(FilterConfig::ForBits(uint64_t{5} << 23), 0, 5000);
  FailEverySite("memory(), 5 MiB", [&] { return Thrown([&] { (void)large.memory(); }); });
}

TEST(AllocationFailure, ThreadPools) {
  const auto topology = Topology::Synthetic("numa:2 core:2 pu:1").value();
  for (const int threads : {1, 3, 0}) {
    FailEverySite("ThreadPool, " + std::to_string(threads),
                  [&] { return StatusOf(ThreadPool::Create(threads, topology)); });
  }
  FailEverySite("ThreadPool, too many", [&] { return StatusOf(ThreadPool::Create(-1, topology)); });
  FailEverySite("ThreadPool, thrown", [&] { return Thrown([&] { const ThreadPool pool(2, topology); }); });
}

TEST(AllocationFailure, InsertBulk) {
  const Filter base = Filled(FilterConfig::ForBits(uint64_t{16} << 23), 0, 5000);
  const std::vector<uint64_t> keys = Keys(1'000'000, base.blocks() / 2);
  FailChange<Filter>("InsertBulk", base, [&](Filter& filter) { return filter.TryInsertBulk(keys); });
  FailChange<Filter>("InsertBulk, thrown", base,
                     [&](Filter& filter) { return Thrown([&] { filter.InsertBulk(keys); }); });
  ThreadPool pool(2);
  FailChange<Filter>("InsertBulk, two threads", base, [&](Filter& filter) { return filter.TryInsertBulk(keys, pool); });
  FailChange<Filter>("InsertBulk, two threads, thrown", base,
                     [&](Filter& filter) { return Thrown([&] { filter.InsertBulk(keys, pool); }); });
  FailChange<Filter>("InsertHashBulk, two threads", base,
                     [&](Filter& filter) { return filter.TryInsertHashBulk(keys, pool); });
}

// noexcept: slower without memory at worst, never another answer.
TEST(AllocationFailure, LookupsByManyThreads) {
  const std::vector<uint64_t> keys = Keys(0, 300'000);
  for (const Placement placement : {Placement::kLocal, Placement::kPartition, Placement::kReplicate}) {
    const MemoryPolicy policy = Placed(placement);
    const Filter filter = Filled(FilterConfig::ForBits(uint64_t{16} << 23).WithMemory(policy), 0, 100'000);
    ThreadPool pool(3, policy.topology);
    std::vector<uint64_t> expected((keys.size() + 63) / 64);
    filter.MayContainBatch(keys, expected);
    std::vector<uint64_t> bitmap(expected.size());
    FailEverySite(std::string("MayContainBatch, three threads, ") + PlacementName(placement), [&] {
      std::fill(bitmap.begin(), bitmap.end(), ~uint64_t{0});
      filter.MayContainBatch(keys, bitmap, pool);
      return bitmap == expected ? Status() : Status(kWrongAnswer);
    });
  }
}

// What is noexcept allocates nothing. Only PredictedFpr may, for its table, and does not depend on it: FirstUse.
TEST(AllocationFailure, NoexceptCallsAllocateNothing) {
  Filter filter = Filled(FilterConfig::ForBits(200'000, 6, Layout::kSector512z2), 0, 5000);
  Filter replicated = Filled(FilterConfig::ForBits(200'000).WithMemory(Placed(Placement::kReplicate)), 0, 5000);
  CountingFilter counting = CountingFilter(FilterConfig::ForBits(200'000, 8, Layout::kCounting4));
  CountingFilter reject =
      CountingFilter(FilterConfig::ForBits(200'000, 8, Layout::kCounting8), OverflowPolicy::kReject);
  const auto concurrent = ConcurrentCountingFilter::Create(counting.Clone());
  const std::vector<uint64_t> keys = Keys(0, 3000);
  const std::vector<std::string_view> strings(100, "a string that is longer than what a small string holds");
  std::vector<uint64_t> bitmap(64);
  std::vector<uint32_t> positions(keys.size());
  FailingMemory::Arm(1, Failing::kFrom, true);
  double sum = 0;
  for (Filter* f : {&filter, &replicated}) {
    f->Insert(uint64_t{1});
    f->InsertBatch(keys);
    f->InsertBatch(strings);
    f->TryInsertBatch(keys, bitmap);
    f->MayContainBatch(keys, bitmap);
    sum += static_cast<double>(f->SelectBatch(keys, positions) + f->SelectBatch(strings, positions));
  }
  for (CountingFilter* f : {&counting, &reject}) {
    f->Add(uint64_t{1});
    f->AddBatch(keys);
    f->AddBatch(strings, bitmap);
    f->RemoveBatch(keys);
    f->CountBatch(keys, positions);
    sum += f->Overflow().predicted_any;
  }
  concurrent.value()->AddBatch(keys);
  concurrent.value()->RemoveBatch(strings);
  sum += static_cast<double>(concurrent.value()->CountHash(3));
  for (const FilterReader* f : {static_cast<FilterReader*>(&filter), static_cast<FilterReader*>(&replicated),
                                static_cast<FilterReader*>(&counting), static_cast<FilterReader*>(&reject)}) {
    sum += f->EstimatedCount() + f->MeasuredFillFpr() + f->FillFraction();
    sum += static_cast<double>(f->SerializedBytes()) + f->Saturated();
  }
  filter.Clear();
  counting.Clear();
  EXPECT_FALSE(FailingMemory::Disarm());
  EXPECT_GT(sum, 0);
}

}  // namespace
}  // namespace bloomline
