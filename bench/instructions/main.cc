// bloomline_instructions: runs every kernel on a fixed set of keys under callgrind, for tools/instructions.sh.
//
// Each row is run twice, on kKeys and on 2 * kKeys keys, and callgrind dumps what each took under the label
// "<row> <keys>". The difference of the two is what kKeys keys cost, to the instruction: start-up, call and what is
// done once per batch are in both.
#include <valgrind/callgrind.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/keys.h"
#include "bloomline/bloomline.h"
#include "hwy/highway.h"

#ifndef BLOOMLINE_BENCH_FLAGS
#define BLOOMLINE_BENCH_FLAGS "unknown"
#endif

// In place of the function in libhwy, which is then not linked. Its static constructors read the time by RDTSCP, which
// Valgrind emulates on CPUs that have it only, while it always claims to have it. AVX-512, which Valgrind cannot run,
// is not among the answers.
namespace hwy {
int64_t SupportedTargets() {
  int64_t targets = HWY_SCALAR | HWY_EMU128;
  if (__builtin_cpu_supports("ssse3")) targets |= HWY_SSSE3;
  if (__builtin_cpu_supports("sse4.2")) targets |= HWY_SSE4;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
    targets |= HWY_AVX2;
  }
  return targets;
}
}  // namespace hwy

namespace bloomline::bench {
namespace {

constexpr size_t kKeys = 4096;  // whole chunks, so that no tail is in the difference
constexpr uint64_t kFilterBytes = 64 << 10;
constexpr const char* kSize = "64KiB";  // below every CPU's second-level cache: without prefetches
constexpr uint64_t kCellsPerKey = 10;

constexpr LayoutChoice kLayouts[] = {
    {Layout::kWord64, 5},      {Layout::kSplit512, 8}, {Layout::kSplit256, 8},  {Layout::kSector512z2, 6},
    {Layout::kSector512z4, 8}, {Layout::kLine512, 7},  {Layout::kCounting4, 8}, {Layout::kCounting8, 8},
};

#if defined(__clang__)
constexpr const char* kCompiler = "clang++ " __clang_version__;
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

using Body = std::function<void(std::span<const uint64_t>)>;

// Keys first … first + count − 1.
std::vector<uint64_t> Keys(uint64_t first, size_t count) {
  std::vector<uint64_t> keys(count);
  for (size_t i = 0; i < count; ++i) keys[i] = KeyAt(first + i);
  return keys;
}

// Members and absent keys in an order without a period: what a lookup of a real mixture meets.
std::vector<uint64_t> Mixed(uint64_t members, size_t count) {
  std::vector<uint64_t> keys(count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t random = KeyAt(~uint64_t{i});
    keys[i] = KeyAt(random % 2 == 0 ? (random >> 1) % members : kFirstAbsent + i);
  }
  return keys;
}

class Suite {
 public:
  // `list`: prints the rows' names and runs nothing.
  Suite(std::string target, bool list) : target_(std::move(target)), list_(list) {}

  // False: a kernel gave wrong answers.
  bool Run() {
    for (const LayoutChoice& choice : kLayouts) {
      if (IsCounting(choice.layout)) {
        Counting(choice);
      } else {
        Plain(choice);
      }
    }
    return !wrong_;
  }

 private:
  FilterConfig Config(const LayoutChoice& choice) const {
    return FilterConfig::ForBits(kFilterBytes * 8, choice.k, choice.layout).WithTarget(target_);
  }

  // Each row on a filter of its own at its design load, so that no row depends on those before it.
  void Plain(const LayoutChoice& choice) {
    const uint64_t members = kFilterBytes * 8 / kCellsPerKey;
    const std::vector<uint64_t> present = Keys(0, members);
    const std::vector<uint64_t> mixed = Mixed(members, 2 * kKeys);
    std::vector<uint64_t> bitmap(2 * kKeys / 64);
    uint64_t in_batches = 0;
    uint64_t one_by_one = 0;
    const auto row = [&](const char* operation, std::span<const uint64_t> keys, auto&& call) {
      Filter filter(Config(choice));
      filter.InsertBatch(present);
      Measure(operation, choice, keys, [&](std::span<const uint64_t> some) { call(filter, some); });
    };
    row("lookup_batch", mixed, [&](Filter& f, std::span<const uint64_t> keys) { f.MayContainBatch(keys, bitmap); });
    for (const uint64_t word : bitmap) in_batches += static_cast<uint64_t>(std::popcount(word));
    row("lookup_one", mixed, [&](Filter& f, std::span<const uint64_t> keys) {
      one_by_one = 0;
      for (const uint64_t key : keys) one_by_one += f.MayContain(key);
    });
    if (in_batches != one_by_one) {
      std::fprintf(stderr, "bloomline_instructions: wrong answers of %s on %s\n",
                   LayoutNameWithK(choice.layout, choice.k).c_str(), target_.c_str());
      wrong_ = true;
    }
    row("insert_batch", present, [&](Filter& f, std::span<const uint64_t> keys) { f.InsertBatch(keys); });
    row("insert_one", present, [&](Filter& f, std::span<const uint64_t> keys) {
      for (const uint64_t key : keys) f.Insert(key);
    });
    row("try_insert_batch", mixed, [&](Filter& f, std::span<const uint64_t> keys) { f.TryInsertBatch(keys, bitmap); });
  }

  void Counting(const LayoutChoice& choice) {
    const uint64_t members = kFilterBytes * 8 / (choice.layout == Layout::kCounting4 ? 4 : 8) / kCellsPerKey;
    const std::vector<uint64_t> present = Keys(0, members);
    const std::vector<uint64_t> mixed = Mixed(members, 2 * kKeys);
    const std::vector<uint64_t> absent = Keys(kFirstAbsent, 2 * kKeys);
    std::vector<uint64_t> bitmap(2 * kKeys / 64);
    // Only `call` is counted. `before` and `after` see to it that each run starts from the design load.
    const auto row = [&](const char* operation, std::span<const uint64_t> keys, auto&& before, auto&& call,
                         auto&& after) {
      CountingFilter filter(Config(choice));
      filter.AddBatch(present);
      Measure(
          operation, choice, keys, [&](std::span<const uint64_t> some) { call(filter, some); },
          [&](std::span<const uint64_t> some) { before(filter, some); },
          [&](std::span<const uint64_t> some) { after(filter, some); });
    };
    const auto nothing = [](CountingFilter&, std::span<const uint64_t>) {};
    const auto add = [](CountingFilter& f, std::span<const uint64_t> keys) { f.AddBatch(keys); };
    const auto remove = [](CountingFilter& f, std::span<const uint64_t> keys) { f.RemoveBatch(keys); };
    row(
        "count_lookup", mixed, nothing,
        [&](CountingFilter& f, std::span<const uint64_t> keys) { f.MayContainBatch(keys, bitmap); }, nothing);
    row("count_add", absent, nothing, add, remove);
    row("count_remove", absent, add, remove, nothing);
  }

  void Measure(const char* operation, const LayoutChoice& choice, std::span<const uint64_t> keys, const Body& body,
               const Body& before = {}, const Body& after = {}) {
    const std::string name =
        std::string(operation) + "/" + LayoutNameWithK(choice.layout, choice.k) + "/" + kSize + "/target:" + target_;
    if (list_) {
      std::printf("%s\n", name.c_str());
      return;
    }
    for (const size_t count : {kKeys, 2 * kKeys}) {
      const std::span<const uint64_t> some = keys.first(count);
      if (before) before(some);
      const std::string label = name + " " + std::to_string(count);
      CALLGRIND_START_INSTRUMENTATION;
      CALLGRIND_ZERO_STATS;
      body(some);
      CALLGRIND_DUMP_STATS_AT(label.c_str());
      CALLGRIND_STOP_INSTRUMENTATION;
      if (after) after(some);
    }
  }

  std::string target_;
  bool list_;
  bool wrong_ = false;
};

int Main(int argc, char** argv) {
  const std::string_view argument = argc > 1 ? argv[1] : "";
  if (argument == "--about") {
    std::printf("compiler: %s\nflags: %s\nhighway: %d.%d\n", kCompiler, BLOOMLINE_BENCH_FLAGS, HWY_MAJOR, HWY_MINOR);
    return 0;
  }
  const bool list = argument == "--list";
  if (argc > 2 || (!argument.empty() && !list)) {
    std::fprintf(stderr, "usage: bloomline_instructions [--list | --about]\n");
    return 2;
  }
  if (!list && RUNNING_ON_VALGRIND == 0) {
    std::fprintf(stderr,
                 "bloomline_instructions: counts nothing by itself; tools/instructions.sh runs it under callgrind\n");
    return 2;
  }
  bool right = true;
  for (const std::string& target : SupportedTargets()) right = Suite(target, list).Run() && right;
  return right ? 0 : 1;
}

}  // namespace
}  // namespace bloomline::bench

int main(int argc, char** argv) { return bloomline::bench::Main(argc, argv); }
