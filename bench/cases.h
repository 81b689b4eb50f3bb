// A case: one row of the output, what it measures and how it is called.
#pragma once

#include <string>
#include <vector>

#include "bench/fixture.h"

namespace bloomline::bench {

enum class Operation : uint8_t {
  kLookupBatch,
  kLookupOne,
  kSelectBatch,
  kInsertBatch,
  kInsertOne,
  kBuild,
  kCountLookup,
  kCountAdd,
  kCountRemove,
  kOracleBatch,  // lookup_batch/…/oracle
  kLimitHash,
  kLimitHashTouch,
  kLimitHashRmw,
  kLimitXxh3,
};

struct Case {
  Operation operation = Operation::kLookupBatch;
  FilterShape filter;
  int hit_percent = 50;
  bool sweep = false;        // the probe set grows with the filter, see ProbesOf
  std::vector<int> threads;  // empty: one thread, CPU time; else real time
  std::string name;          // without what Google Benchmark appends for threads
};

// The suite, in an order in which big filters are made once. `target` is that of rows without /target:NAME.
struct SuiteOptions {
  std::string target;
  bool all = false;  // every k of every layout at 1 MiB, and threads for every layout, too
};
std::vector<Case> MakeSuite(const SuiteOptions& options);

// The probe set of a case. Base rows: 16 Ki keys up to 16 MiB, 4 Mi above, so that the keys themselves stay in cache
// beside small filters; a 16 MiB filter is then touched in at most 16 Ki of its 256 Ki lines. Sweep rows: two keys per
// line of the filter, within the same limits, so that a pass touches six sevenths of the lines and the curve bends
// where the caches end.
ProbeShape ProbesOf(const Case& c, int thread);

// "32KiB", "1MiB", "1GiB": the largest unit that divides the size.
std::string SizeName(uint64_t bytes);

}  // namespace bloomline::bench
