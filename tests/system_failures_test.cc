// What an operating system may refuse, or not know yet: each in a process of its own, where the system calls fail.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/thread_pool.h"
#include "bloomline/topology.h"
#include "engine/binding.h"
#include "tests/child_process.h"
#include "tests/snapshot_util.h"

namespace bloomline {
namespace {

using test::ForbidCalls;
using test::RunInChild;
using test::TempDir;

constexpr int kCannotForbid = 77;
// MADV_…, which older headers lack.
constexpr uint32_t kHugePage = 14, kNoHugePage = 15, kPopulateWrite = 23;

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
#else
constexpr bool kThreadSanitizer = false;
#endif

void ExpectDone(int code) {
  if (code == kCannotForbid) GTEST_SKIP() << "this system does not allow system calls to be forbidden";
  EXPECT_EQ(code, 0);
}

// Before Linux 5.14 nobody can ask for pages by madvise: they are written to.
TEST(SystemFailures, KernelsThatCannotPopulateMemory) {
  ExpectDone(RunInChild([] {
    if (!ForbidCalls({{SYS_madvise, EINVAL, kPopulateWrite}})) return kCannotForbid;
    if (madvise(nullptr, 0, kPopulateWrite) == 0 || errno != EINVAL) return 1;
    const Result<Filter> filter = Filter::Create(FilterConfig::ForBits(uint64_t{8} << 23));
    if (!filter.ok()) return 2;
    for (const uint64_t word : filter->words()) {
      if (word != 0) return 3;
    }
    const MemoryReport report = filter->memory();
    return report.resident_bytes == report.bytes ? 0 : 4;
  }));
}

// A kernel that has no transparent huge pages.
TEST(SystemFailures, KernelsWithoutHugePages) {
  ExpectDone(RunInChild([] {
    if (!ForbidCalls({{SYS_madvise, EINVAL, kHugePage}, {SYS_madvise, EINVAL, kNoHugePage}})) return kCannotForbid;
    const Result<Filter> wished = Filter::Create(FilterConfig::ForBits(uint64_t{8} << 23));
    if (!wished.ok()) return 1;
    if (wished->memory().note.find("refused transparent huge pages") == std::string::npos) return 2;
    MemoryPolicy base;
    base.pages = Pages::kDefault;
    const Result<Filter> plain = Filter::Create(FilterConfig::ForBits(uint64_t{8} << 23).WithMemory(base));
    if (!plain.ok()) return 3;
    return plain->memory().note.empty() ? 0 : 4;
  }));
}

// As many threads as there are, and where there are none the caller's alone.
TEST(SystemFailures, ThreadsThatCannotBeStarted) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer ends a program that can start no thread";
  ExpectDone(RunInChild([] {
    if (!ForbidCalls({
          {SYS_clone3, EAGAIN},
#if defined(SYS_fork)
              {SYS_fork, EAGAIN},
#endif
          {
            SYS_clone, EAGAIN
          }
        })) {
      return kCannotForbid;
    }
    const auto pool = ThreadPool::Create(4);
    if (!pool.ok()) return 1;
    if ((*pool)->threads() != 1 || (*pool)->pinned()) return 2;
    if ((*pool)->note().find("0 of 4 threads could be started") == std::string::npos) return 3;
    int runs = 0;
    (*pool)->Run([&](int thread) { runs += thread == 0 ? 1 : 100; });
    if (runs != 1) return 4;
    Filter filter(FilterConfig::ForBits(uint64_t{8} << 23));
    const std::vector<uint64_t> keys = test::Random(3).Take(200'000);
    if (!filter.TryInsertBulk(std::span<const uint64_t>(keys), **pool).ok()) return 5;
    Filter one_by_one(FilterConfig::ForBits(uint64_t{8} << 23));
    one_by_one.InsertBatch(std::span<const uint64_t>(keys));
    return std::equal(filter.words().begin(), filter.words().end(), one_by_one.words().begin()) ? 0 : 6;
  }));
}

// A disk that cannot be read.
TEST(SystemFailures, ReadsThatFail) {
  const TempDir folder;
  const std::string path = folder / "f";
  test::SampleFilter(Layout::kSplit512, 8, 50, 20).Save(path);
  ExpectDone(RunInChild([&] {
    if (!ForbidCalls({{SYS_pread64, EIO}})) return kCannotForbid;
    const Result<Filter> loaded = Filter::TryLoad(path);
    if (loaded.ok() || loaded.error().code() != ErrorCode::kIo || loaded.error().os_error() != EIO) return 1;
    const Result<FilterView> mapped = FilterView::TryMap(path);
    if (mapped.ok() || mapped.error().code() != ErrorCode::kIo) return 2;
    return std::string(mapped.error().what()).find(path) != std::string::npos ? 0 : 3;
  }));
}

// A disk that accepts what is written and cannot keep it: the old file stays.
TEST(SystemFailures, SyncsThatFail) {
  const TempDir folder;
  const std::string path = folder / "f";
  test::SampleFilter(Layout::kSplit512, 8, 50, 20).Save(path);
  const std::vector<std::byte> old_bytes = test::ReadBytes(path);
  ExpectDone(RunInChild([&] {
    if (!ForbidCalls({{SYS_fsync, EIO}})) return kCannotForbid;
    const Status saved = test::SampleFilter(Layout::kWord64, 5, 50, 20).TrySave(path);
    if (saved.ok() || saved.error().code() != ErrorCode::kIo || saved.error().os_error() != EIO) return 1;
    if (test::ReadBytes(path) != old_bytes) return 2;
    return folder.Names() == std::vector<std::string>{"f"} ? 0 : 3;
  }));
}

// The real call, which on a machine with one node nothing else makes: the kernel then says that the memory is bound.
TEST(SystemFailures, MemoryIsBoundWhereThatIsAllowed) {
  const auto machine = Topology::Machine();
  if (machine->synthetic()) GTEST_SKIP() << machine->note();
  constexpr size_t kBytes = size_t{1} << 20;
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const int node = 0;
  const std::string refused = detail::PlaceMemory(*machine, memory, kBytes, {&node, 1});
  int mode = -1;
  constexpr int kOfAddress = 2, kBind = 2, kPreferred = 1, kPreferredMany = 5;           // MPOL_F_ADDR, MPOL_…
  const long asked = syscall(SYS_get_mempolicy, &mode, nullptr, 0, memory, kOfAddress);  // NOLINT
  munmap(memory, kBytes);
  if (asked != 0) GTEST_SKIP() << "the kernel does not say how memory is bound";
  if (!refused.empty()) {
    EXPECT_EQ(mode, 0) << "refused, and bound: " << refused;
    GTEST_SKIP() << "binding is refused here: " << refused;
  }
  EXPECT_TRUE(mode == kBind || mode == kPreferred || mode == kPreferredMany) << mode;
}

}  // namespace
}  // namespace bloomline
