// Runs operations while their allocations fail, one after the other: each answers Error(kOutOfMemory), or does what it
// does otherwise where it can do without; nothing is leaked, and what the operation worked on is as it was.
// The program that includes this has the allocator of failing_memory.h.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/topology.h"
#include "tests/failing_memory.h"

namespace bloomline::test {

inline constexpr int64_t kMostSites = 20'000;
inline constexpr int kOk = 0;

template <class T>
Status StatusOf(const Result<T>& result) {
  return result.ok() ? Status() : Status(result.error());
}

// What a call that throws threw.
template <class Body>
Status Thrown(const Body& body) {
  try {
    body();
    return {};
  } catch (const Error& error) {
    return error;
  }
}

struct Outcome {
  int code = kOk;  // an ErrorCode, or kOk
  bool other_exception = false;
  bool fired = false;
};

// Runs the operation while its N-th allocation fails.
inline Outcome RunFailing(const std::function<Status()>& operation, int64_t nth, Failing failing, bool malloc) {
  Outcome outcome;
  FailingMemory::Arm(nth, failing, malloc);
  try {
    const Status status = operation();
    if (!status.ok()) outcome.code = static_cast<int>(status.error().code());
  } catch (...) {
    outcome.other_exception = true;
  }
  outcome.fired = FailingMemory::Disarm();
  return outcome;
}

struct Operation {
  std::function<Status()> run;
  std::function<void()> prepare = [] {};             // before each run, with memory
  std::function<void(bool ok)> check = [](bool) {};  // after each run, with memory
  std::function<void()> finish = [] {};              // frees what prepare and run made
};

// Fails each of an operation's allocations in turn, alone and with all later ones, until it gets through without.
inline void FailEverySite(const std::string& name, const Operation& operation, bool malloc = true) {
  SCOPED_TRACE(name);
  operation.prepare();
  const Status unhindered = operation.run();  // also fills what is made once per process
  const int expected = unhindered.ok() ? kOk : static_cast<int>(unhindered.error().code());
  operation.check(unhindered.ok());
  operation.finish();
  for (const Failing failing : {Failing::kOne, Failing::kFrom}) {
    int64_t refused = 0;
    int64_t absorbed = 0;
    int64_t nth = 1;
    for (;; ++nth) {
      SCOPED_TRACE((failing == Failing::kOne ? "only allocation " : "from allocation ") + std::to_string(nth));
      ASSERT_LT(nth, kMostSites);
      const Held before = FailingMemory::Now();
      operation.prepare();
      const Outcome outcome = RunFailing(operation.run, nth, failing, malloc);
      EXPECT_FALSE(outcome.other_exception);
      operation.check(outcome.code == kOk && !outcome.other_exception);
      operation.finish();
      const Held after = FailingMemory::Now();
      EXPECT_EQ(before.blocks, after.blocks);
      EXPECT_EQ(before.mallocs, after.mallocs);
      EXPECT_EQ(before.mapped_bytes, after.mapped_bytes);
      EXPECT_EQ(before.open_files, after.open_files);
      if (!outcome.fired) {
        EXPECT_EQ(outcome.code, expected);
        break;
      }
      if (outcome.code == static_cast<int>(ErrorCode::kOutOfMemory)) {
        ++refused;
      } else {
        EXPECT_EQ(outcome.code, expected);
        ++absorbed;
      }
    }
    std::printf("%-44s %s: %lld places, %lld refused, %lld absorbed\n", name.c_str(),
                failing == Failing::kOne ? "one" : "all", static_cast<long long>(nth - 1),
                static_cast<long long>(refused), static_cast<long long>(absorbed));
  }
}

inline void FailEverySite(const std::string& name, std::function<Status()> run, bool malloc = true) {
  Operation operation;
  operation.run = std::move(run);
  FailEverySite(name, operation, malloc);
}

// For operations to return where they got through and did something else than they should.
inline const Error kWrongAnswer(ErrorCode::kCorrupt, "the operation got through, but its answer is wrong");

// ---- Filters to work on.

inline MemoryPolicy Placed(Placement placement) {
  MemoryPolicy policy;
  policy.placement = placement;
  policy.topology = Topology::Synthetic("numa:3 core:1 pu:1").value();
  return policy;
}

inline std::vector<uint64_t> Keys(uint64_t first, uint64_t count) {
  std::vector<uint64_t> keys(count);
  for (uint64_t i = 0; i < count; ++i) keys[i] = first + i;
  return keys;
}

inline std::vector<uint64_t> WordsOf(const FilterReader& filter) {
  return {filter.words().begin(), filter.words().end()};
}

inline Filter Filled(const FilterConfig& config, uint64_t first, uint64_t count) {
  Filter filter(config);
  filter.InsertBatch(Keys(first, count));
  return filter;
}

// An operation on a copy of `base`, which a failure leaves as it was. After a success the copy is `done` each time.
template <class AnyFilter>
void FailChange(const std::string& name, const AnyFilter& base, const std::function<Status(AnyFilter&)>& change) {
  const std::vector<uint64_t> old_words = WordsOf(base);
  std::optional<AnyFilter> filter;
  std::optional<std::vector<uint64_t>> new_words;
  std::optional<uint64_t> new_count;
  Operation operation;
  operation.prepare = [&] { filter.emplace(base.Clone()); };
  operation.finish = [&] { filter.reset(); };
  operation.run = [&] { return change(*filter); };
  operation.check = [&](bool ok) {
    if (!ok) {
      EXPECT_EQ(WordsOf(*filter), old_words);
      EXPECT_EQ(filter->InsertedCount(), base.InsertedCount());
    } else if (!new_words) {
      new_words = WordsOf(*filter);
      new_count = filter->InsertedCount();
    } else {
      EXPECT_EQ(WordsOf(*filter), *new_words);
      EXPECT_EQ(filter->InsertedCount(), *new_count);
    }
  };
  FailEverySite(name, operation);
}

}  // namespace bloomline::test
