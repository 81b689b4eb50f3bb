#include "bench/run.h"

#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <tuple>

#include "bench/limits.h"
#include "bench/oracle.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace bloomline::bench {
namespace {

using benchmark::State;

std::atomic<bool> g_any_failed{false};
std::vector<std::string> g_row_names;  // changed before the rows run only

void Fail(State& state, const std::string& message) { FailRow(state, message); }

// Items per second, and what belongs to a filter.
void Finish(State& state, size_t keys_per_pass, const Fixture* fixture) {
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(keys_per_pass));
  if (fixture == nullptr) return;
  state.counters["fpr"] = benchmark::Counter(fixture->fpr(), benchmark::Counter::kAvgThreads);
  state.SetLabel(fixture->granted_pages());
}

// ---- Lookups. Each pass answers all probes; the last pass's answers are compared with the oracle's.

void LookupBatch(State& state, Fixture& fixture, const ProbeSet& probes, const std::vector<uint64_t>& answers) {
  const FilterReader& filter = fixture.reader();
  std::vector<uint64_t> bitmap(answers.size());
  if (probes.keys.empty()) {
    for (auto _ : state) {
      filter.MayContainBatch(probes.strings, bitmap);
      benchmark::ClobberMemory();
    }
  } else {
    for (auto _ : state) {
      filter.MayContainBatch(probes.keys, bitmap);
      benchmark::ClobberMemory();
    }
  }
  if (bitmap != answers) Fail(state, "wrong answers: they differ from the scalar oracle's");
}

void LookupOracle(State& state, Fixture& fixture, const ProbeSet& probes, const std::vector<uint64_t>& answers) {
  const OracleBatch batch = FindOracleBatch(fixture.shape().layout, fixture.shape().k);
  if (batch == nullptr) return Fail(state, "no oracle for this layout");
  const detail::BlockBits bits = fixture.bits();
  std::vector<uint64_t> bitmap(answers.size());
  for (auto _ : state) {
    batch(bits, probes.keys, bitmap.data());
    benchmark::ClobberMemory();
  }
  if (bitmap != answers) Fail(state, "wrong answers: they differ from the scalar oracle's");
}

void LookupOne(State& state, Fixture& fixture, const ProbeSet& probes, const std::vector<uint64_t>& answers) {
  const Filter& filter = fixture.filter();
  uint64_t found = 0;
  for (auto _ : state) {
    found = 0;
    for (const uint64_t key : probes.keys) found += filter.MayContain(key);
    benchmark::DoNotOptimize(found);
  }
  uint64_t right = 0;
  for (const uint64_t word : answers) right += static_cast<uint64_t>(std::popcount(word));
  if (found != right) {
    Fail(state, "wrong answers: " + std::to_string(found) + " keys found, the oracle finds " + std::to_string(right));
  }
}

void SelectBatch(State& state, Fixture& fixture, const ProbeSet& probes, const std::vector<uint64_t>& answers) {
  const Filter& filter = fixture.filter();
  std::vector<uint32_t> positions(probes.size());
  size_t selected = 0;
  for (auto _ : state) {
    selected = filter.SelectBatch(probes.keys, positions);
    benchmark::ClobberMemory();
  }
  std::vector<uint64_t> bitmap(answers.size());
  for (size_t i = 0; i < selected; ++i) bitmap[positions[i] / 64] |= uint64_t{1} << (positions[i] % 64);
  if (bitmap != answers) Fail(state, "wrong positions: they differ from the scalar oracle's answers");
}

// ---- Inserts: keys that are in the filter already, so that its bits must come out as they were.

void CheckUnchanged(State& state, Fixture& fixture) {
  if (fixture.Unchanged()) return;
  DropFixture(fixture.shape());
  Fail(state, "wrong bits: they differ from those that the filter was filled with");
}

void InsertBatch(State& state, Fixture& fixture, const ProbeSet& probes) {
  for (auto _ : state) {
    fixture.filter().InsertBatch(probes.keys);
    benchmark::ClobberMemory();
  }
  CheckUnchanged(state, fixture);
}

void InsertOne(State& state, Fixture& fixture, const ProbeSet& probes) {
  for (auto _ : state) {
    for (const uint64_t key : probes.keys) fixture.filter().Insert(key);
    benchmark::ClobberMemory();
  }
  CheckUnchanged(state, fixture);
}

// ---- Counters: keys that are not in the filter are added and removed in turn, in parts of it that leave its load near
// the design's; one of the two is timed. The counters must come out as they were.

void CountChange(State& state, Fixture& fixture, const ProbeSet& probes, bool time_adds) {
  CountingFilter& filter = fixture.counting();
  const std::span<const uint64_t> keys = probes.keys;
  const size_t part = std::clamp<size_t>(static_cast<size_t>(fixture.shape().keys() / 8), 1024, keys.size());
  size_t not_done = 0;
  for (auto _ : state) {
    for (size_t first = 0; first < keys.size(); first += part) {
      const auto some = keys.subspan(first, std::min(part, keys.size() - first));
      if (!time_adds) state.PauseTiming();
      not_done += filter.AddBatch(some);
      if (time_adds) state.PauseTiming();
      if (!time_adds) state.ResumeTiming();
      not_done += filter.RemoveBatch(some);
      if (time_adds) state.ResumeTiming();
    }
    benchmark::ClobberMemory();
  }
  if (not_done != 0) Fail(state, "a key was refused or absent");
  CheckUnchanged(state, fixture);
}

// From an empty filter to the design load; the bits must be those of the plain fill.
void Build(State& state, Fixture& fixture) {
  const uint64_t n = fixture.shape().keys();
  const uint64_t needed = n * sizeof(uint64_t) + fixture.shape().bytes * 2;  // the keys, and what InsertBulk may take
  const uint64_t available = AvailableMemory();
  if (available != 0 && available < needed) {
    return Fail(state, "needs " + std::to_string(needed >> 20) + " MiB of memory, " + std::to_string(available >> 20) +
                           " MiB are available");
  }
  const std::vector<uint64_t>& keys = MemberKeys(n);
  Status status;
  for (auto _ : state) {
    fixture.filter().Clear();
    if (const Status built = fixture.filter().TryInsertBulk(keys); !built.ok()) status = built;
    benchmark::ClobberMemory();
  }
  if (!status.ok()) {
    DropFixture(fixture.shape());
    return Fail(state, status.error().what());
  }
  CheckUnchanged(state, fixture);
  Finish(state, n, &fixture);
}

// ---- Limits.

using LimitFunction = uint64_t (*)(const detail::BlockBits&, const detail::KeySpan&);

// Not wall time: other processes' shares of the core must not decide.
uint64_t ThreadCpuNanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// The limit is what the machine does at best: prefetching or not, whichever is faster here. Found out once.
uint32_t BestPrefetch(LimitFunction function, detail::BlockBits bits, const detail::KeySpan& keys) {
  static std::map<std::tuple<LimitFunction, uint64_t, const void*>, uint32_t> known;
  const auto [entry, is_new] = known.try_emplace({function, bits.blocks, bits.words}, 0);
  if (!is_new) return entry->second;
  uint64_t best[2] = {UINT64_MAX, UINT64_MAX};
  const size_t passes = keys.size > (size_t{1} << 20) ? 6 : 64;
  for (size_t i = 0; i < passes * 2; ++i) {
    bits.prefetch = static_cast<uint32_t>(i % 2);
    const uint64_t start = ThreadCpuNanoseconds();
    benchmark::DoNotOptimize(function(bits, keys));
    best[i % 2] = std::min(best[i % 2], ThreadCpuNanoseconds() - start);
  }
  entry->second = best[1] < best[0] ? 1 : 0;
  return entry->second;
}

void Limit(State& state, const Case& c, LimitFunction function, const ProbeSet& probes, Fixture* fixture) {
  const detail::KeySpan keys{probes.keys.data(), probes.keys.size(), detail::KeyForm::kU64};
  detail::BlockBits bits;
  if (fixture != nullptr) {
    bits = fixture->bits();
    bits.blocks = c.filter.bytes / 64;  // whole lines, of split256 too
    bits.prefetch = BestPrefetch(function, bits, keys);
    state.counters["prefetch"] = bits.prefetch;
    state.SetLabel(fixture->granted_pages());
  } else {
    bits.blocks = c.filter.bytes / 64;
  }
  for (auto _ : state) benchmark::DoNotOptimize(function(bits, keys));
  Finish(state, keys.size, nullptr);
  if (c.operation == Operation::kLimitHashRmw) CheckUnchanged(state, *fixture);
}

void LimitXxh3(State& state, const ProbeSet& probes) {
  for (auto _ : state) {
    uint64_t sum = 0;
    for (const std::string_view key : probes.strings) sum ^= XXH3_64bits_withSeed(key.data(), key.size(), 0);
    benchmark::DoNotOptimize(sum);
  }
  Finish(state, probes.size(), nullptr);
}

LimitFunction FunctionOf(const Case& c) {
  const LimitOps* ops = FindLimitOps(c.filter.target);
  if (ops == nullptr) return nullptr;
  if (c.operation == Operation::kLimitHash) return ops->hash;
  return c.operation == Operation::kLimitHashTouch ? ops->hash_touch : ops->hash_rmw;
}

// ---- One row.

void Run(State& state, const Case& c) {
  const std::shared_ptr<const ProbeSet> probes = GetProbeSet(ProbesOf(c, state.thread_index()));
  const bool is_limit = c.operation >= Operation::kLimitHash;
  const LimitFunction limit = is_limit && c.operation != Operation::kLimitXxh3 ? FunctionOf(c) : nullptr;
  if (c.operation == Operation::kLimitXxh3) return LimitXxh3(state, *probes);
  if (is_limit && limit == nullptr) return Fail(state, "not compiled for target " + c.filter.target);
  if (c.operation == Operation::kLimitHash) return Limit(state, c, limit, *probes, nullptr);

  // Gigabytes of keys for builds are not kept beside the next filter.
  if (c.operation != Operation::kBuild && state.thread_index() == 0) ForgetMemberKeys();
  const Result<std::shared_ptr<Fixture>> made = GetFixture(c.filter);
  if (!made.ok()) return Fail(state, made.error().what());
  Fixture& fixture = *made.value();
  switch (c.operation) {
    case Operation::kLimitHashTouch:
    case Operation::kLimitHashRmw:
      return Limit(state, c, limit, *probes, &fixture);
    case Operation::kBuild:
      return Build(state, fixture);
    case Operation::kInsertBatch:
      InsertBatch(state, fixture, *probes);
      break;
    case Operation::kInsertOne:
      InsertOne(state, fixture, *probes);
      break;
    case Operation::kCountAdd:
    case Operation::kCountRemove:
      CountChange(state, fixture, *probes, c.operation == Operation::kCountAdd);
      break;
    default: {
      const auto answers = fixture.Answers(ProbesOf(c, state.thread_index()));
      if (!answers.ok()) return Fail(state, answers.error().what());
      if (c.operation == Operation::kLookupBatch || c.operation == Operation::kCountLookup) {
        LookupBatch(state, fixture, *probes, *answers.value());
      }
      if (c.operation == Operation::kOracleBatch) LookupOracle(state, fixture, *probes, *answers.value());
      if (c.operation == Operation::kLookupOne) LookupOne(state, fixture, *probes, *answers.value());
      if (c.operation == Operation::kSelectBatch) SelectBatch(state, fixture, *probes, *answers.value());
    }
  }
  Finish(state, probes->size(), &fixture);
}

}  // namespace

const std::vector<std::string>& RowNames() { return g_row_names; }
void NoteRowName(const std::string& name) { g_row_names.push_back(name); }

void Register(const Case& c) {
  auto* registered = RegisterRow(c.name, [c](State& state) { Run(state, c); });
  if (c.threads.empty()) return;
  registered->UseRealTime();
  for (const int threads : c.threads) {
    registered->Threads(threads);
    NoteRowName(c.name + "/real_time/threads:" + std::to_string(threads));
  }
}

void FailRow(State& state, const std::string& message) {
  g_any_failed = true;
  state.SkipWithError(message.c_str());
}

bool AnyFailed() { return g_any_failed; }

}  // namespace bloomline::bench
