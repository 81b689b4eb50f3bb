// Where the system calls that bind memory and threads are forbidden, as in containers: everything works, and says so.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/thread_pool.h"
#include "bloomline/topology.h"
#include "engine/binding.h"
#include "tests/child_process.h"

namespace bloomline {
namespace {

// From here on this process gets EPERM for what binds memory and threads. False where that cannot be arranged.
bool ForbidBinding() {
  std::vector<test::ForbiddenCall> calls;
  for (const int call : {SYS_mbind, SYS_set_mempolicy, SYS_get_mempolicy, SYS_move_pages, SYS_migrate_pages,
                         SYS_sched_setaffinity, SYS_sched_getaffinity, SYS_getcpu}) {
    calls.push_back({call, EPERM});
  }
  return test::ForbidCalls(calls);
}

constexpr int kCannotForbid = 77;

// The number of things that went wrong, each told on stderr.
int UseEverything() {
  int wrong = 0;
  const auto expect = [&](bool right, const std::string& what) {
    if (right) return;
    ++wrong;
    std::fprintf(stderr, "wrong: %s\n", what.c_str());
  };
  const size_t nodes = Topology::Machine()->nodes().size();
  const int cpu = 0;
  expect(!detail::PinThread(*Topology::Machine(), {&cpu, 1}).empty(), "pinning was not forbidden");
  expect(sched_getcpu() >= 0, "finding the thread's node takes a system call");
  std::vector<uint64_t> keys(100'000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  ThreadPool pool(2);
  expect(pool.threads() == 2, "the pool has " + std::to_string(pool.threads()) + " threads");
  expect(!pool.pinned() && !pool.note().empty(), "the pool does not say that it is not pinned");
  for (const Placement placement : {Placement::kAuto, Placement::kLocal, Placement::kInterleave, Placement::kBind,
                                    Placement::kReplicate, Placement::kPartition}) {
    MemoryPolicy policy;
    policy.placement = placement;
    policy.node = Topology::Machine()->nodes()[0].number;
    Filter filter(FilterConfig::ForBits(uint64_t{8} << 23, 8).WithMemory(policy));
    filter.InsertBulk(keys, pool);
    std::vector<uint64_t> bitmap((keys.size() + 63) / 64);
    filter.MayContainBatch(keys, bitmap, pool);
    for (size_t i = 0; i < keys.size(); ++i) {
      if ((bitmap[i / 64] >> (i % 64) & 1) == 0) return ++wrong;
    }
    const MemoryReport report = filter.memory();
    const bool wished = placement != Placement::kAuto && placement != Placement::kLocal;
    if (nodes > 1 && wished) {
      expect(report.note.find("refused") != std::string::npos,
             std::string(PlacementName(placement)) + " was not bound and does not say so: " + report.note);
    }
    expect(report.resident_bytes >= report.bytes, "not resident: " + std::to_string(report.resident_bytes));
  }
  return wrong;
}

TEST(Seccomp, WithoutPermissionToBindEverythingWorksAndSaysSo) {
  const int code = test::RunInChild([] {
    if (!ForbidBinding()) return kCannotForbid;
    int wrong = 1;
    try {
      wrong = UseEverything();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "wrong: %s\n", error.what());
    }
    return wrong == 0 ? 0 : 1;
  });
  if (code == kCannotForbid) GTEST_SKIP() << "this system does not allow system calls to be forbidden";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace bloomline
