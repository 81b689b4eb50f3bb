#include "bench/cases.h"

#include <algorithm>
#include <thread>

namespace bloomline::bench {
namespace {

constexpr uint64_t kKiB = uint64_t{1} << 10;
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kSizes[] = {32 * kKiB, kMiB, 16 * kMiB, 512 * kMiB};
constexpr uint64_t kSweepFirst = 32 * kKiB;
constexpr uint64_t kSweepLast = 1024 * kMiB;

constexpr size_t kFewProbes = size_t{16} << 10;
constexpr size_t kManyProbes = size_t{4} << 20;

constexpr LayoutChoice kLayouts[] = {
    {Layout::kSplit512, 8},    {Layout::kWord64, 5},      {Layout::kSplit256, 8},
    {Layout::kSector512z2, 6}, {Layout::kSector512z4, 8}, {Layout::kLine512, 7},
};
constexpr LayoutChoice kSweepLayouts[] = {
    {Layout::kSplit512, 8}, {Layout::kWord64, 5}, {Layout::kSector512z2, 6}, {Layout::kLine512, 7}};
constexpr Layout kCountingLayouts[] = {Layout::kCounting4, Layout::kCounting8};
constexpr Operation kOperations[] = {Operation::kLookupBatch, Operation::kLookupOne, Operation::kSelectBatch,
                                     Operation::kInsertBatch, Operation::kInsertOne, Operation::kBuild};

const char* OperationName(Operation operation) {
  switch (operation) {
    case Operation::kLookupBatch:
    case Operation::kOracleBatch:
      return "lookup_batch";
    case Operation::kLookupOne:
      return "lookup_one";
    case Operation::kSelectBatch:
      return "select_batch";
    case Operation::kInsertBatch:
      return "insert_batch";
    case Operation::kInsertOne:
      return "insert_one";
    case Operation::kBuild:
      return "build";
    case Operation::kCountLookup:
      return "count_lookup";
    case Operation::kCountAdd:
      return "count_add";
    case Operation::kCountRemove:
      return "count_remove";
    case Operation::kLimitHash:
      return "limit/hash";
    case Operation::kLimitHashTouch:
      return "limit/hash_touch";
    case Operation::kLimitHashRmw:
      return "limit/hash_rmw";
    case Operation::kLimitXxh3:
      return "limit/xxh3/strings";
  }
  return "";
}

bool IsLimit(Operation operation) { return operation >= Operation::kLimitHash; }

// A case without its details.
Case Base(Operation operation, const LayoutChoice& layout, uint64_t bytes, const std::string& target) {
  Case c;
  c.operation = operation;
  c.filter.layout = layout.layout;
  c.filter.k = layout.k;
  c.filter.bytes = bytes;
  c.filter.target = target;
  return c;
}

class Suite {
 public:
  explicit Suite(bool all) : all_(all) {}

  void Add(Case c, const std::string& detail = "") {
    c.name = OperationName(c.operation);
    if (!IsLimit(c.operation)) c.name += "/" + LayoutNameWithK(c.filter.layout, c.filter.k);
    if (c.operation != Operation::kLimitHash && c.operation != Operation::kLimitXxh3) {
      c.name += "/" + SizeName(c.filter.bytes);
    }
    c.name += detail;
    cases_.push_back(std::move(c));
  }

  void AddLimits(uint64_t bytes, const std::string& target, Pages pages, const std::string& detail) {
    for (const Operation operation : {Operation::kLimitHashTouch, Operation::kLimitHashRmw}) {
      Case c = Base(operation, kLayouts[0], bytes, target);
      c.filter.pages = pages;
      Add(c, detail);
    }
  }

  // Everything that is measured on u64 keys at one size with one target; `detail` names the target.
  void AddSize(uint64_t bytes, const std::string& target, const std::string& detail, bool is_base) {
    AddLimits(bytes, target, Pages::kTransparentHuge, detail);
    for (const LayoutChoice& layout : kLayouts) {
      for (const Operation operation : kOperations) {
        if (operation == Operation::kBuild && !is_base) continue;  // the other operations tell targets apart
        Add(Base(operation, layout, bytes, target), detail);
      }
      if (!is_base) continue;
      // Two large filters' pages lie in memory of different speed; a ratio wants both of its sides on the same pages.
      if (bytes > kSmallFilterBytes && layout.layout != kLayouts[0].layout) {
        Add(Base(Operation::kLimitHashTouch, layout, bytes, target), "/on:" + LayoutNameWithK(layout.layout, layout.k));
      }
      for (const Operation operation : {Operation::kLookupBatch, Operation::kLookupOne, Operation::kSelectBatch}) {
        AddHitRates(Base(operation, layout, bytes, target));
      }
      Add(Base(Operation::kOracleBatch, layout, bytes, target), "/oracle");
      if (layout.layout == kLayouts[0].layout || all_) AddThreads(Base(Operation::kLookupBatch, layout, bytes, target));
    }
    AddCounting(bytes, target, detail, is_base);
  }

  void AddHitRates(Case c, const std::string& detail = "") {
    c.hit_percent = 0;
    Add(c, detail + "/hit0");
    c.hit_percent = 100;
    Add(c, detail + "/hit100");
  }

  // One thread, two and so on doubled, and as many as the machine has.
  void AddThreads(Case c) {
    const int all = std::max(2, static_cast<int>(std::thread::hardware_concurrency()));
    for (int threads = 1; threads < all; threads *= 2) c.threads.push_back(threads);
    c.threads.push_back(all);
    Add(c);
  }

  void AddCounting(uint64_t bytes, const std::string& target, const std::string& detail, bool is_base) {
    for (const Layout layout : kCountingLayouts) {
      const LayoutChoice choice{layout, 8};
      for (const Operation operation : {Operation::kCountLookup, Operation::kCountAdd, Operation::kCountRemove}) {
        Add(Base(operation, choice, bytes, target), detail);
      }
      if (!is_base) continue;
      AddHitRates(Base(Operation::kCountLookup, choice, bytes, target));
      if (all_) AddThreads(Base(Operation::kCountLookup, choice, bytes, target));
      if (bytes <= kSmallFilterBytes) continue;
      for (const Operation operation : {Operation::kLimitHashTouch, Operation::kLimitHashRmw}) {
        Add(Base(operation, choice, bytes, target), "/on:" + LayoutName(layout, 8));
      }
    }
  }

  std::vector<Case> Take() { return std::move(cases_); }

 private:
  bool all_;
  std::vector<Case> cases_;
};

void AddStrings(Suite& suite, const std::string& target) {
  suite.Add(Base(Operation::kLimitXxh3, kLayouts[0], kMiB, target));
  for (const uint64_t bytes : kSizes) {
    if (bytes > kSmallFilterBytes) continue;  // hashing is what is asked about; filling would take half a minute
    Case c = Base(Operation::kLookupBatch, kLayouts[0], bytes, target);
    c.filter.strings = true;
    suite.Add(c, "/strings");
    suite.AddHitRates(c, "/strings");
  }
}

void AddSmallPages(Suite& suite, const std::string& target) {
  for (const uint64_t bytes : {16 * kMiB, 512 * kMiB}) {
    suite.AddLimits(bytes, target, Pages::kDefault, "/pages:4k");
    for (const Operation operation : {Operation::kLookupBatch, Operation::kInsertBatch}) {
      Case c = Base(operation, kLayouts[0], bytes, target);
      c.filter.pages = Pages::kDefault;
      suite.Add(c, "/pages:4k");
    }
  }
}

void AddSweep(Suite& suite, const std::string& target) {
  for (uint64_t bytes = kSweepFirst; bytes <= kSweepLast; bytes *= 2) {
    Case limit = Base(Operation::kLimitHashTouch, kLayouts[0], bytes, target);
    limit.sweep = true;
    suite.Add(limit, "/sweep");
    for (const LayoutChoice& layout : kSweepLayouts) {
      Case c = Base(Operation::kLookupBatch, layout, bytes, target);
      c.sweep = true;
      suite.Add(c, "/sweep");
    }
  }
}

void AddEveryK(Suite& suite, const std::string& target) {
  for (const Layout layout :
       {Layout::kSector512z1, Layout::kSector512z2, Layout::kSector512z4, Layout::kSector512z8, Layout::kLine512}) {
    for (int k = kMinHashes; k <= kMaxHashes; ++k) {
      const LayoutChoice choice{layout, k};
      if (!IsValidHashCount(layout, k) || std::ranges::find(kLayouts, choice) != std::end(kLayouts)) continue;
      suite.Add(Base(Operation::kLookupBatch, choice, kMiB, target));
      suite.Add(Base(Operation::kInsertBatch, choice, kMiB, target));
    }
  }
}

}  // namespace

std::string SizeName(uint64_t bytes) {
  const char* unit = "B";
  for (const char* larger : {"KiB", "MiB", "GiB"}) {
    if (bytes % 1024 != 0) break;
    bytes /= 1024;
    unit = larger;
  }
  return std::to_string(bytes) + unit;
}

ProbeShape ProbesOf(const Case& c, int thread) {
  ProbeShape probes;
  probes.members = c.filter.keys();
  probes.hit_percent = c.hit_percent;
  probes.count = c.filter.bytes > kSmallFilterBytes ? kManyProbes : kFewProbes;
  if (c.sweep) probes.count = std::clamp(static_cast<size_t>(c.filter.bytes / 64 * 2), kFewProbes, kManyProbes);
  // An insert must leave the filter at its design load: the keys are there already.
  if (c.operation == Operation::kInsertBatch || c.operation == Operation::kInsertOne) probes.hit_percent = 100;
  // Keys that are added and removed in turn must not be there.
  if (c.operation == Operation::kCountAdd || c.operation == Operation::kCountRemove) probes.hit_percent = 0;
  probes.strings = c.filter.strings || c.operation == Operation::kLimitXxh3;
  probes.stream = static_cast<uint64_t>(thread);
  return probes;
}

std::vector<Case> MakeSuite(const SuiteOptions& options) {
  Suite suite(options.all);
  const std::string& target = options.target;
  const std::vector<std::string> supported = SupportedTargets();
  suite.Add(Base(Operation::kLimitHash, kLayouts[0], kMiB, target));
  for (const std::string& other : supported) {
    if (other != supported.front()) {
      suite.Add(Base(Operation::kLimitHash, kLayouts[0], kMiB, other), "/target:" + other);
    }
  }
  AddStrings(suite, target);
  for (const uint64_t bytes : kSizes) {
    suite.AddSize(bytes, target, "", true);
    for (const std::string& other : supported) {
      if (other != supported.front()) suite.AddSize(bytes, other, "/target:" + other, false);
    }
  }
  AddSmallPages(suite, target);
  AddSweep(suite, target);
  if (options.all) AddEveryK(suite, target);
  return suite.Take();
}

}  // namespace bloomline::bench
