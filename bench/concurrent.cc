#include "bench/concurrent.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/fixture.h"
#include "bench/keys.h"
#include "bench/run.h"
#include "bloomline/concurrent_filter.h"
#include "bloomline/thread_pool.h"

namespace bloomline::bench {
namespace {

using benchmark::State;

constexpr uint64_t kSmall = uint64_t{1} << 20;
constexpr uint64_t kShared = uint64_t{16} << 20;
constexpr int kWriters = 2;
constexpr int kReaders = 2;

uint64_t KeysOf(uint64_t bytes) { return bytes * 8 / kBitsPerKey; }

// Bits of a filter that was filled by plain inserts.
Filter Reference(uint64_t bytes) {
  Filter filter(FilterConfig::ForBits(bytes * 8));
  filter.InsertBatch(MemberKeys(KeysOf(bytes)));
  return filter;
}

void Finish(State& state, size_t keys) {
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(keys));
}

void CheckBits(State& state, ConcurrentFilter& filter, const Filter& reference) {
  const Result<Filter> copy = filter.TryCopy();
  if (!copy.ok() || !std::ranges::equal(copy->words(), reference.words())) FailRow(state, "wrong bits");
}

ProbeShape Members(uint64_t bytes, int thread) {
  ProbeShape probes;
  probes.members = KeysOf(bytes);
  probes.count = size_t{16} << 10;
  probes.hit_percent = 100;
  probes.stream = static_cast<uint64_t>(thread);
  return probes;
}

void InsertShared(State& state) {
  const Filter reference = Reference(kSmall);
  ConcurrentFilter filter(reference.Clone());
  const auto probes = GetProbeSet(Members(kSmall, 0));
  for (auto _ : state) {
    filter.InsertBatch(probes->keys);
    benchmark::ClobberMemory();
  }
  Finish(state, probes->size());
  CheckBits(state, filter, reference);
}

void BuildShared(State& state) {
  const Filter reference = Reference(kSmall);
  const std::vector<uint64_t>& keys = MemberKeys(KeysOf(kSmall));
  Filter empty(FilterConfig::ForBits(kSmall * 8));
  std::unique_ptr<ConcurrentFilter> filter;
  for (auto _ : state) {
    state.PauseTiming();
    if (filter != nullptr) empty = std::move(*filter).Release();
    empty.Clear();
    filter = std::make_unique<ConcurrentFilter>(std::move(empty));
    state.ResumeTiming();
    filter->InsertBatch(keys);
  }
  Finish(state, keys.size());
  CheckBits(state, *filter, reference);
}

// A filter with the first half of its design load, made anew for each run by the first thread, before the others pass
// the barrier at the loop's start. Writers then insert new keys, from the second half on.
std::unique_ptr<ConcurrentFilter> g_shared;
constexpr size_t kWriteBatch = size_t{16} << 10;
constexpr size_t kReadsPerWrite = 10;

uint64_t HalfLoad() { return KeysOf(kShared) / 2; }

// The index of the first key of a writer's batch. Batches of new keys, until the second half is used up; then again.
uint64_t WrittenAt(int writer, uint64_t iteration) {
  const uint64_t batches = HalfLoad() / kWriteBatch / kWriters;
  return HalfLoad() + (static_cast<uint64_t>(writer) * batches + iteration % batches) * kWriteBatch;
}

bool AllFound(const std::vector<uint64_t>& keys) {
  std::vector<uint64_t> bitmap((keys.size() + 63) / 64);
  g_shared->MayContainBatch(keys, bitmap);
  size_t found = 0;
  for (const uint64_t word : bitmap) found += static_cast<size_t>(std::popcount(word));
  return found == keys.size();
}

void WriteShared(State& state, int thread) {
  std::vector<uint64_t> keys(kWriteBatch);
  uint64_t iteration = 0;
  for (auto _ : state) {
    const uint64_t first = WrittenAt(thread, iteration++);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = KeyAt(first + i);  // some 5 % of the time
    g_shared->InsertBatch(keys);
  }
  const auto inserts = static_cast<double>(state.iterations()) * static_cast<double>(kWriteBatch);
  Finish(state, kWriteBatch);
  state.counters["inserts_per_second"] = benchmark::Counter(inserts, benchmark::Counter::kIsRate);
  state.counters["lookups_per_second"] = benchmark::Counter(0, benchmark::Counter::kIsRate);
  for (uint64_t i = 0; i < iteration; ++i) {
    const uint64_t first = WrittenAt(thread, i);
    for (size_t j = 0; j < keys.size(); ++j) keys[j] = KeyAt(first + j);
    if (!AllFound(keys)) return FailRow(state, "wrong answers: a key that was inserted is missing");
  }
}

void ReadShared(State& state, int thread) {
  ProbeShape members = Members(kShared, thread);
  members.members = HalfLoad();
  members.count = kWriteBatch * kReadsPerWrite;
  const auto probes = GetProbeSet(members);
  std::vector<uint64_t> bitmap(probes->member_bitmap.size());
  bool all_found = true;
  for (auto _ : state) {
    g_shared->MayContainBatch(probes->keys, bitmap);
    all_found = all_found && bitmap == probes->member_bitmap;
  }
  const auto lookups = static_cast<double>(state.iterations()) * static_cast<double>(probes->size());
  Finish(state, probes->size());
  state.counters["inserts_per_second"] = benchmark::Counter(0, benchmark::Counter::kIsRate);
  state.counters["lookups_per_second"] = benchmark::Counter(lookups, benchmark::Counter::kIsRate);
  if (!all_found) FailRow(state, "wrong answers: a key that was inserted is missing");
}

void Concurrent(State& state) {
  const int thread = state.thread_index();
  if (thread == 0) {
    Filter half(FilterConfig::ForBits(kShared * 8));
    half.InsertBatch(std::span(MemberKeys(KeysOf(kShared))).first(HalfLoad()));
    g_shared = std::make_unique<ConcurrentFilter>(std::move(half));
  }
  if (thread < kWriters) {
    WriteShared(state, thread);
  } else {
    ReadShared(state, thread);
  }
}

// ---- Pools.

constexpr uint64_t kPooled = uint64_t{512} << 20;

FilterShape PooledShape(const std::string& target) {
  FilterShape shape;
  shape.bytes = kPooled;
  shape.target = target;
  return shape;
}

void LookupPool(State& state, const std::string& target, int threads) {
  ForgetMemberKeys();
  const Result<std::shared_ptr<Fixture>> made = GetFixture(PooledShape(target));
  if (!made.ok()) return FailRow(state, made.error().what());
  Case c;
  c.filter = PooledShape(target);
  const auto probes = GetProbeSet(ProbesOf(c, 0));
  const auto answers = (*made)->Answers(ProbesOf(c, 0));
  if (!answers.ok()) return FailRow(state, answers.error().what());
  ThreadPool pool(threads);
  std::vector<uint64_t> bitmap((*answers)->size());
  for (auto _ : state) {
    (*made)->filter().MayContainBatch(probes->keys, bitmap, pool);
    benchmark::ClobberMemory();
  }
  Finish(state, probes->size());
  state.SetLabel((*made)->granted_pages());
  if (bitmap != **answers) FailRow(state, "wrong answers: they differ from the scalar oracle's");
}

void BuildPool(State& state, const std::string& target, int threads) {
  const Result<std::shared_ptr<Fixture>> made = GetFixture(PooledShape(target));
  if (!made.ok()) return FailRow(state, made.error().what());
  const std::vector<uint64_t>& keys = MemberKeys(KeysOf(kPooled));
  ThreadPool pool(threads);
  Status status;
  for (auto _ : state) {
    state.PauseTiming();
    (*made)->filter().Clear();
    state.ResumeTiming();
    if (const Status built = (*made)->filter().TryInsertBulk(keys, pool); !built.ok()) status = built;
  }
  Finish(state, keys.size());
  if (!status.ok()) {
    DropFixture(PooledShape(target));
    return FailRow(state, status.error().what());
  }
  if (!(*made)->Unchanged()) FailRow(state, "wrong bits: they differ from those that the filter was filled with");
}

}  // namespace

void RegisterConcurrent(const std::string& target) {
  const int all = ThreadPool().threads();
  for (const int threads : {1, all}) {
    const std::string name = "/split512/512MiB/pool:" + std::to_string(threads);
    for (const char* operation : {"lookup_batch", "build"}) NoteRowName(operation + name + "/real_time");
    RegisterRow("lookup_batch" + name, LookupPool, target, threads)->UseRealTime();
    RegisterRow("build" + name, BuildPool, target, threads)->UseRealTime();
    if (all == 1) break;
  }
  RegisterRow("insert_batch/split512/1MiB/shared", InsertShared);
  RegisterRow("build/split512/1MiB/shared", BuildShared);
  RegisterRow("concurrent/split512/16MiB/writers:2", Concurrent)->Threads(kWriters + kReaders)->UseRealTime();
}

}  // namespace bloomline::bench
