// ThreadPool: every thread runs once per Run, pinned where it is meant to be, however often and from however many
// callers.
#include "bloomline/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <climits>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "engine/binding.h"
#include "tests/snapshot_util.h"

namespace bloomline {
namespace {

using test::CodeOf;
using test::MessageOf;

TEST(ThreadPool, EachThreadRunsOncePerRun) {
  for (const int threads : {1, 2, 3, 7, 40}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.threads(), threads) << pool.note();
    std::vector<std::atomic<int>> runs(static_cast<size_t>(threads));
    for (int round = 0; round < 100; ++round) {
      pool.Run([&](int thread) { ++runs[static_cast<size_t>(thread)]; });
      for (const auto& count : runs) ASSERT_EQ(count, round + 1);
    }
  }
}

TEST(ThreadPool, WhatRunDidIsSeenByItsCaller) {
  ThreadPool pool(3);
  std::vector<int> plain(3);
  for (int round = 0; round < 2'000; ++round) {
    pool.Run([&](int thread) { ++plain[static_cast<size_t>(thread)]; });
    ASSERT_EQ(plain[static_cast<size_t>(round % 3)], round + 1);
  }
}

TEST(ThreadPool, CallersTakeTurns) {
  ThreadPool pool(2);
  std::atomic<int> inside{0};
  std::atomic<int> calls{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        pool.Run([&](int) {
          EXPECT_LE(++inside, 2);
          ++calls;
          --inside;
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(calls, 3 * 300 * 2);
}

TEST(ThreadPool, ThreadsArePinnedToTheCpusOfTheirNodes) {
  const auto machine = Topology::Machine();
  if (machine->synthetic()) GTEST_SKIP() << machine->note();
  const std::vector<int> usable = detail::UsableCpus(*machine);
  for (const int threads : {static_cast<int>(usable.size()), static_cast<int>(usable.size()) + 1}) {
    if (threads == 1) continue;
    ThreadPool pool(threads);
    ASSERT_TRUE(pool.pinned()) << pool.note();
    std::vector<cpu_set_t> sets(static_cast<size_t>(threads));
    pool.Run([&](int thread) {
      EXPECT_EQ(sched_getaffinity(0, sizeof(cpu_set_t), &sets[static_cast<size_t>(thread)]), 0);
      EXPECT_EQ(machine->CurrentNode(), pool.NodeOf(thread));
    });
    std::set<int> taken;
    for (int thread = 0; thread < threads; ++thread) {
      const cpu_set_t& set = sets[static_cast<size_t>(thread)];
      for (const int cpu : usable) {
        if (!CPU_ISSET(cpu, &set)) continue;
        EXPECT_EQ(machine->NodeOfCpu(cpu), pool.NodeOf(thread));
        taken.insert(cpu);
      }
      if (threads <= static_cast<int>(usable.size())) {
        EXPECT_EQ(CPU_COUNT(&set), 1);
      }
    }
    EXPECT_EQ(taken.size(), usable.size()) << "some hardware threads are left out";
  }
}

TEST(ThreadPool, AutoFollowsTheCallersAffinity) {
  const auto machine = Topology::Machine();
  if (machine->synthetic()) GTEST_SKIP() << machine->note();
  const int cpu = detail::UsableCpus(*machine).back();
  std::thread([&] {
    ASSERT_EQ(detail::PinThread(*machine, {&cpu, 1}), "");
    EXPECT_EQ(ThreadPool().threads(), 1);
  }).join();
  EXPECT_LE(ThreadPool().threads(), static_cast<int>(detail::UsableCpus(*machine).size()));
}

TEST(ThreadPool, NodesOfAMadeUpMachineInTurn) {
  const auto made = Topology::Synthetic("numa:2 core:2 pu:2").value();
  ThreadPool pool(ThreadPool::kAuto, made);
  ASSERT_EQ(pool.threads(), 8);
  for (int thread = 0; thread < 8; ++thread) EXPECT_EQ(pool.NodeOf(thread), thread % 2);
  EXPECT_FALSE(pool.pinned());
  EXPECT_NE(pool.note(), "");
}

TEST(ThreadPool, WrongNumbersAreRefused) {
  for (const int threads : {-1, INT_MIN, ThreadPool::kMaxThreads + 1, INT_MAX}) {
    const auto refused = ThreadPool::Create(threads);
    EXPECT_EQ(CodeOf(refused), ErrorCode::kInvalidArgument) << threads;
    EXPECT_NE(MessageOf(refused).find(std::to_string(threads)), std::string::npos) << MessageOf(refused);
    EXPECT_THROW(ThreadPool pool(threads), Error);
  }
}

}  // namespace
}  // namespace bloomline
