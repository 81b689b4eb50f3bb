#include "engine/storage.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "engine/machine_memory.h"
#include "tests/snapshot_util.h"

namespace bloomline::detail {
namespace {

using test::CodeOf;
using test::MessageOf;
using test::TempDir;

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::unique_ptr<Storage> Make(uint64_t bytes, const MemoryPolicy& policy = {}) {
  Result<std::unique_ptr<Storage>> storage = Storage::Allocate(bytes, policy);
  EXPECT_TRUE(storage.ok()) << MessageOf(storage);
  return storage.ok() ? *std::move(storage) : nullptr;
}

std::string ReadWord(const char* path, size_t index) {
  std::ifstream file(path);
  std::string word;
  for (size_t i = 0; i <= index && file >> word; ++i) {
  }
  return word;
}
bool OvercommitIsStrict() { return ReadWord("/proc/sys/vm/overcommit_memory", 0) == "2"; }
bool HaveSmaps() { return std::ifstream("/proc/self/smaps").good(); }
std::string BasePageName() { return std::to_string(sysconf(_SC_PAGESIZE) / 1024) + "KiB"; }

TEST(Storage, IsZeroAlignedAndWritableToItsEnd) {
  for (const Pages pages : {Pages::kDefault, Pages::kTransparentHuge}) {
    for (const bool lazy : {false, true}) {
      for (const uint64_t bytes :
           {uint64_t{1}, uint64_t{31}, uint64_t{32}, uint64_t{64}, uint64_t{4095}, uint64_t{4096}, uint64_t{4097},
            2 * kMiB - 1, 2 * kMiB, 2 * kMiB + 1, 5 * kMiB + 4096, 64 * kMiB}) {
        const auto storage = Make(bytes, {pages, lazy});
        ASSERT_NE(storage, nullptr);
        EXPECT_EQ(storage->bytes(), bytes);
        EXPECT_TRUE(storage->writable());
        EXPECT_EQ(reinterpret_cast<uintptr_t>(storage->data()) % (bytes >= 2 * kMiB ? 2 * kMiB : 64), 0u) << bytes;
        EXPECT_EQ(std::count(storage->data(), storage->data() + bytes, std::byte{0}),
                  static_cast<std::ptrdiff_t>(bytes));
        std::memset(storage->data(), 0xff, bytes);
      }
    }
  }
}

TEST(StorageDeathTest, AnOverrunStopsAtOnceFromTwoMebibytesOn) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto storage = Make(2 * kMiB + 4096);
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  volatile std::byte* const data = storage->data();
  const uint64_t end = (storage->bytes() + page - 1) / page * page;
  EXPECT_DEATH(data[end] = std::byte{1}, "");
  EXPECT_DEATH(data[-1] = std::byte{1}, "");
}

TEST(Storage, SizesThatCannotBeAreRefusedWithTheFigures) {
  EXPECT_EQ(CodeOf(Storage::Allocate(0, {})), ErrorCode::kInvalidArgument);
  const uint64_t limit = ReadMemoryLimit().bytes;
  for (const bool lazy : {false, true}) {
    for (const uint64_t bytes : {uint64_t{1} << 56, (uint64_t{1} << 56) + 1, uint64_t{1} << 63, ~uint64_t{0}}) {
      const auto storage = Storage::Allocate(bytes, {Pages::kDefault, lazy});
      EXPECT_EQ(CodeOf(storage), ErrorCode::kOutOfMemory) << bytes;
      EXPECT_NE(MessageOf(storage).find(std::to_string(bytes)), std::string::npos) << MessageOf(storage);
    }
  }
  const auto refused = Storage::Allocate(limit + 1, {});
  EXPECT_EQ(CodeOf(refused), ErrorCode::kOutOfMemory);
  EXPECT_NE(MessageOf(refused).find(std::to_string(limit + 1)), std::string::npos) << MessageOf(refused);
  EXPECT_NE(MessageOf(refused).find(std::to_string(limit)), std::string::npos) << MessageOf(refused);
}

TEST(Storage, LazyMemoryMayExceedTheMachines) {
  if (OvercommitIsStrict()) GTEST_SKIP() << "this machine reserves memory strictly";
  const uint64_t bytes = std::min(4 * ReadMemoryLimit().bytes, uint64_t{1} << 45) / 4096 * 4096;
  const auto storage = Make(bytes, {Pages::kDefault, true});
  ASSERT_NE(storage, nullptr);
  storage->words()[0] = 1;
  storage->words()[bytes / 8 - 1] = 1;
  if (HaveSmaps()) {
    EXPECT_EQ(storage->Report().resident_bytes, 2 * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
  }
}

TEST(Storage, IsGivenBack) {
  ASSERT_NE(Make(64 * kMiB), nullptr);  // what a process takes once: the topology, memory for threads
  const uint64_t before = test::ProcValue("/proc/self/status", "VmSize");
  if (before == 0) GTEST_SKIP() << "no /proc";
  for (int i = 0; i < 50; ++i) {
    ASSERT_NE(Make(64 * kMiB), nullptr);
    ASSERT_NE(Make(100), nullptr);
  }
  EXPECT_LT(test::ProcValue("/proc/self/status", "VmSize"), before + 64 * 1024);
}

TEST(StorageReport, BasePagesWhereHugeOnesAreForbidden) {
  if (!HaveSmaps()) GTEST_SKIP() << "no /proc";
  const auto storage = Make(8 * kMiB, {Pages::kDefault, false});
  std::memset(storage->data(), 1, storage->bytes());
  const MemoryReport report = storage->Report();
  EXPECT_EQ(report.bytes, 8 * kMiB);
  EXPECT_EQ(report.resident_bytes, 8 * kMiB);
  EXPECT_EQ(report.huge_page_bytes, 0u);
  EXPECT_EQ(report.granted, BasePageName());
  EXPECT_EQ(report.note, "");
}

TEST(StorageReport, HugePagesAreCountedOrTheirLackIsExplained) {
  if (!HaveSmaps()) GTEST_SKIP() << "no /proc";
  const auto storage = Make(9 * kMiB, {Pages::kTransparentHuge, true});
  EXPECT_EQ(storage->Report().resident_bytes, 0u);
  EXPECT_EQ(storage->Report().granted, "none yet");
  EXPECT_NE(storage->Report().note, "");
  std::memset(storage->data(), 1, storage->bytes());
  const MemoryReport report = storage->Report();
  EXPECT_EQ(report.resident_bytes, 9 * kMiB);
  EXPECT_LE(report.huge_page_bytes, 8 * kMiB);  // the last MiB is too short for one
  if (report.huge_page_bytes == 8 * kMiB) {
    EXPECT_NE(report.granted.find("(transparent) 88.9 %"), std::string::npos) << report.granted;
    EXPECT_NE(report.granted.find(BasePageName() + " 11.1 %"), std::string::npos) << report.granted;
    EXPECT_EQ(report.note, "");
  } else {
    EXPECT_NE(report.note, "");
  }
}

TEST(StorageReport, NeighboursAreNotCounted) {
  if (!HaveSmaps()) GTEST_SKIP() << "no /proc";
  for (const uint64_t bytes : {uint64_t{4096}, 4 * kMiB}) {
    std::vector<std::unique_ptr<Storage>> all;
    for (int i = 0; i < 6; ++i) all.push_back(Make(bytes, {Pages::kTransparentHuge, true}));
    for (size_t i = 0; i < all.size(); i += 2) std::memset(all[i]->data(), 1, bytes);
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i]->Report().resident_bytes, i % 2 == 0 ? bytes : 0) << bytes << " " << i;
    }
  }
}

TEST(StorageReport, SmallMemorySaysWhyItHasNoHugePages) {
  const auto storage = Make(100'000);
  std::memset(storage->data(), 1, storage->bytes());
  const MemoryReport report = storage->Report();
  EXPECT_EQ(report.bytes, 100'000u);
  EXPECT_EQ(report.resident_bytes, 100'000u);  // by mincore, should there be no /proc
  EXPECT_EQ(report.huge_page_bytes, 0u);
  EXPECT_NE(report.note, "");
}

// Minor page faults of this process so far.
uint64_t Faults() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_minflt);
}

TEST(Storage, EveryPageIsTouchedOnceWhenItIsMade) {
  if (!HaveSmaps()) GTEST_SKIP() << "no /proc";
  for (const uint64_t bytes : {uint64_t{4096}, 3 * kMiB + 4096, 64 * kMiB}) {
    const uint64_t pages = bytes / static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const uint64_t before = Faults();
    const auto storage = Make(bytes, {Pages::kDefault, false});
    const uint64_t made = Faults();
    EXPECT_EQ(storage->Report().resident_bytes, bytes);
    EXPECT_GE(made - before, pages);
    EXPECT_LE(made - before, pages + pages / 100 + 200);  // threads' stacks, the heap
    const uint64_t again = Faults();
    std::memset(storage->data(), 1, bytes);
    EXPECT_LE(Faults() - again, pages / 100 + 10) << "pages were not writable yet";
  }
}

TEST(Storage, PagesOfTheReserveFallBackDownwards) {
  if (!HaveSmaps()) GTEST_SKIP() << "no /proc";
  for (const Pages pages : {Pages::kHuge2MiB, Pages::kHuge1GiB}) {
    for (const uint64_t bytes : {uint64_t{100}, 2 * kMiB, 5 * kMiB + 4096}) {
      const auto storage = Make(bytes, {pages, false});
      ASSERT_NE(storage, nullptr);
      std::memset(storage->data(), 1, bytes);
      const MemoryReport report = storage->Report();
      EXPECT_EQ(report.resident_bytes, bytes);
      uint64_t reserved = 0;
      uint64_t sum = 0;
      for (const MemoryReport::PageShare& share : report.pages) {
        sum += share.bytes;
        if (share.page_bytes >= kHugePageBytes && !share.transparent) reserved += share.bytes;
      }
      EXPECT_EQ(sum, bytes) << report.granted;
      if (reserved < bytes / kHugePageBytes * kHugePageBytes || bytes < kHugePageBytes) {
        EXPECT_NE(report.note, "") << "nothing says why: " << report.granted;
      }
    }
  }
}

TEST(Storage, LazyMemoryTakesNothingFromTheReserve) {
  const auto storage = Make(4 * kMiB, {Pages::kHuge2MiB, true});
  if (HaveSmaps()) {
    EXPECT_EQ(storage->Report().resident_bytes, 0u);
  }
  EXPECT_NE(storage->Report().note.find("lazy"), std::string::npos) << storage->Report().note;
}

MemoryPolicy On(const char* machine, Placement placement, int node = 0) {
  MemoryPolicy policy;
  policy.placement = placement;
  policy.node = node;
  policy.topology = Topology::Synthetic(machine).value();
  return policy;
}

TEST(Storage, ReplicasAreMemoryOfTheirOwn) {
  const auto storage = Make(4 * kMiB, On("numa:3 core:2 pu:2", Placement::kReplicate));
  EXPECT_EQ(storage->placement(), Placement::kReplicate);
  const Replicas* replicas = storage->replicas();
  ASSERT_NE(replicas, nullptr);
  ASSERT_EQ(replicas->count, 3u);
  EXPECT_EQ(replicas->copies[0], storage->words());
  ASSERT_EQ(replicas->cpus, 12u);
  for (size_t cpu = 0; cpu < 12; ++cpu) EXPECT_EQ(replicas->copy_of_cpu[cpu], cpu / 4);
  for (size_t copy = 0; copy < 3; ++copy) std::memset(replicas->copies[copy], static_cast<int>(copy + 1), 4 * kMiB);
  for (size_t copy = 0; copy < 3; ++copy) {
    EXPECT_EQ(replicas->copies[copy][0], 0x0101010101010101 * (copy + 1));
    EXPECT_EQ(replicas->copies[copy][4 * kMiB / 8 - 1], 0x0101010101010101 * (copy + 1));
  }
  const MemoryReport report = storage->Report();
  EXPECT_EQ(report.bytes, 4 * kMiB);
  EXPECT_EQ(report.copies, 3);
  if (HaveSmaps()) {
    EXPECT_EQ(report.resident_bytes, 12 * kMiB);
  }
  EXPECT_NE(report.note.find("made up"), std::string::npos) << report.note;  // nothing was bound
}

TEST(Storage, PartsBeginAtHugePages) {
  const auto storage = Make(10 * kMiB + 64, On("numa:2 core:1 pu:1", Placement::kPartition));
  ASSERT_EQ(storage->partition_ends().size(), 2u);
  EXPECT_EQ(storage->partition_ends()[0], 4 * kMiB);
  EXPECT_EQ(storage->partition_ends()[1], 10 * kMiB + 64);
  EXPECT_EQ(storage->replicas(), nullptr);
  std::memset(storage->data(), 0xff, storage->bytes());
}

TEST(Storage, UnknownNodesAndWishesAreRefused) {
  const auto refused = Storage::Allocate(4096, On("numa:2 core:1 pu:1", Placement::kBind, 2));
  EXPECT_EQ(CodeOf(refused), ErrorCode::kInvalidArgument);
  EXPECT_NE(MessageOf(refused).find("node = 2"), std::string::npos) << MessageOf(refused);
  EXPECT_NE(MessageOf(refused).find("0, 1"), std::string::npos) << MessageOf(refused);
  EXPECT_EQ(CodeOf(Storage::Allocate(4096, On("numa:2 core:1 pu:1", static_cast<Placement>(6)))),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Storage::Allocate(4096, {static_cast<Pages>(4), false})), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(Storage::Allocate(4096, On("numa:2 core:1 pu:1", Placement::kBind, 1)).ok());
}

TEST(Storage, CopiesTogetherMustFitTheMachine) {
  const uint64_t bytes = ReadMemoryLimit().bytes / 4 * 3;
  const auto refused = Storage::Allocate(bytes, On("numa:2 core:1 pu:1", Placement::kReplicate));
  EXPECT_EQ(CodeOf(refused), ErrorCode::kOutOfMemory);
  EXPECT_NE(MessageOf(refused).find("2 copies"), std::string::npos) << MessageOf(refused);
}

TEST(StorageReport, NodesAreReadFromTheRightMappings) {
  const TempDir folder;
  const std::string path = folder / "numa_maps";
  std::ofstream(path) << "7f0000000000 default anon=9 dirty=9 N0=9 kernelpagesize_kB=4\n"
                         "7f0000400000 bind:1 anon=5 dirty=5 N0=2 N1=3 kernelpagesize_kB=4\n"
                         "7f0000600000 interleave:0-1 file=/anon_hugepage\\040(deleted) huge anon=2 N1=1 N12=1 "
                         "kernelpagesize_kB=2048\n"
                         "7f0000a00000 default N0=7 kernelpagesize_kB=4\n";
  const auto at = [](uint64_t address) { return reinterpret_cast<const void*>(static_cast<uintptr_t>(address)); };
  std::vector<MemoryReport::NodeShare> nodes;
  ASSERT_TRUE(AddNodeShares(at(0x7f0000400000), 6 * kMiB, nodes, path.c_str()));
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[0].node, 0);
  EXPECT_EQ(nodes[0].bytes, 2u * 4096);
  EXPECT_EQ(nodes[1].node, 1);
  EXPECT_EQ(nodes[1].bytes, 3u * 4096 + 2 * kMiB);
  EXPECT_EQ(nodes[2].node, 12);
  EXPECT_EQ(nodes[2].bytes, 2 * kMiB);
  EXPECT_FALSE(AddNodeShares(at(0x7f0000400000), kMiB, nodes, (folder / "none").c_str()));
}

TEST(StorageReport, ReservedPagesAreNoPartOfRss) {
  const TempDir folder;
  const std::string path = folder / "smaps";
  std::ofstream(path) << "7f0000000000-7f0040000000 rw-p 00000000 00:0f 1 /anon_hugepage (deleted)\n"
                         "KernelPageSize:  1048576 kB\nRss: 0 kB\nPrivate_Hugetlb: 1048576 kB\n"
                         "7f0040000000-7f0040400000 rw-p 00000000 00:0f 1 /anon_hugepage (deleted)\n"
                         "KernelPageSize:     2048 kB\nRss: 0 kB\nPrivate_Hugetlb: 4096 kB\n"
                         "7f0040400000-7f0040403000 rw-p 00000000 00:00 0\n"
                         "KernelPageSize:        4 kB\nRss: 12 kB\n";
  const MappingAccount account =
      ReadMappingAccount(reinterpret_cast<const void*>(uintptr_t{0x7f0000000000}), 1028 * kMiB + 12288, path.c_str());
  EXPECT_TRUE(account.exact);
  EXPECT_EQ(account.reserved_1gib, 1024 * kMiB);
  EXPECT_EQ(account.reserved_2mib, 4 * kMiB);
  EXPECT_EQ(account.resident_bytes, 1028 * kMiB + 12288);
}

TEST(StorageReport, AccountsAreReadFromTheRightMappings) {
  const TempDir folder;
  const std::string path = folder / "smaps";
  std::ofstream(path) << "7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \nSize: 4096 kB\nRss: 100 kB\n"
                         "AnonHugePages: 64 kB\nVmFlags: rd wr\n"
                         "7f0000400000-7f0000800000 rw-p 00000000 00:00 0 [heap]\nRss: 3000 kB\n"
                         "AnonHugePages: 2048 kB\n"
                         "7f0000800000-7f0000a00000 r--p 00000000 00:00 0 /a/file-name\nRss: 7 kB\n"
                         "FilePmdMapped: 0 kB\n";
  const auto at = [](uint64_t address) { return reinterpret_cast<const void*>(static_cast<uintptr_t>(address)); };
  const MappingAccount middle = ReadMappingAccount(at(0x7f0000400000), 4 * kMiB, path.c_str());
  EXPECT_TRUE(middle.found);
  EXPECT_TRUE(middle.exact);
  EXPECT_EQ(middle.resident_bytes, 3000u * 1024);
  EXPECT_EQ(middle.transparent_bytes, 2 * kMiB);
  const MappingAccount part = ReadMappingAccount(at(0x7f0000500000), kMiB, path.c_str());
  EXPECT_TRUE(part.found);
  EXPECT_FALSE(part.exact);
  const MappingAccount all = ReadMappingAccount(at(0x7f0000000000), 10 * kMiB, path.c_str());
  EXPECT_TRUE(all.exact);
  EXPECT_EQ(all.resident_bytes, 3107u * 1024);
  EXPECT_FALSE(ReadMappingAccount(at(0x7f0000a00000), kMiB, path.c_str()).found);
  EXPECT_FALSE(ReadMappingAccount(at(0x7f0000400000), kMiB, (folder / "none").c_str()).found);
}

TEST(MachineMemory, TheLowestControlGroupLimitCounts) {
  const TempDir folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder / name).parent_path());
    std::ofstream(folder / name) << text << "\n";
  };
  const auto limit = [&](const std::string& groups) {
    write("groups", groups);
    return ControlGroupLimit({folder / "groups", folder / "v2", folder / "v1", ""});
  };
  EXPECT_EQ(limit("0::/a/b"), std::nullopt);
  EXPECT_EQ(ControlGroupLimit({folder / "none", folder / "v2", folder / "v1", ""}), std::nullopt);
  write("v2/a/b/memory.max", "max");
  EXPECT_EQ(limit("0::/a/b"), std::nullopt);
  write("v2/a/memory.max", "5000");
  EXPECT_EQ(limit("0::/a/b"), 5000u);
  write("v2/a/b/memory.max", "7000");
  EXPECT_EQ(limit("0::/a/b"), 5000u);
  write("v2/a/b/memory.max", "3000");
  EXPECT_EQ(limit("0::/a/b"), 3000u);
  EXPECT_EQ(limit("0::/a"), 5000u);
  EXPECT_EQ(limit("0::/"), std::nullopt);
  write("v2/memory.max", "9000");
  EXPECT_EQ(limit("0::/elsewhere"), 9000u);  // the path of another mount: the root counts still
  write("v1/x/memory.limit_in_bytes", "1234");
  EXPECT_EQ(limit("8:pids:/x\n4:cpu,memory:/x\n1:name=systemd:/x"), 1234u);
  EXPECT_EQ(limit("4:memory:/x\n0::/a/b"), 1234u);
  EXPECT_EQ(limit("4:memoryless:/x"), std::nullopt);
  EXPECT_EQ(limit("not a group file"), std::nullopt);
}

TEST(ControlGroup, TheLowestQuotaOfCpusCounts) {
  const TempDir folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder / name).parent_path());
    std::ofstream(folder / name) << text << "\n";
  };
  const auto cpus = [&](const std::string& groups) {
    write("groups", groups);
    return ControlGroupCpus({folder / "groups", folder / "v2", "", folder / "v1"});
  };
  EXPECT_EQ(cpus("0::/a/b"), std::nullopt);
  write("v2/a/b/cpu.max", "max 100000");
  EXPECT_EQ(cpus("0::/a/b"), std::nullopt);
  write("v2/a/cpu.max", "250000 100000");
  EXPECT_EQ(cpus("0::/a/b"), 2.5);
  write("v2/a/b/cpu.max", "50000 100000");
  EXPECT_EQ(cpus("0::/a/b"), 0.5);
  write("v1/x/cpu.cfs_quota_us", "-1");
  write("v1/x/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cpus("4:cpu,cpuacct:/x"), std::nullopt);
  write("v1/x/cpu.cfs_quota_us", "300000");
  EXPECT_EQ(cpus("4:cpu,cpuacct:/x"), 3);
  EXPECT_EQ(cpus("4:cpuset:/x"), std::nullopt);
}

TEST(MachineMemory, TheLimitIsNoMoreThanTheMachineHas) {
  const MemoryLimit limit = ReadMemoryLimit();
  EXPECT_GT(limit.bytes, 0u);
  EXPECT_LE(limit.bytes, static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_NE(limit.owner, "");
}

TEST(MachineMemory, AvailableIsWhatTheKernelSays) {
  const TempDir folder;
  const std::string path = folder / "meminfo";
  std::ofstream(path) << "MemTotal:       1000 kB\nMemFree:  10 kB\nMemAvailable:     300 kB\nSwapFree:   5 kB\n";
  EXPECT_EQ(AvailableMemory(path.c_str()), 305u * 1024);
  EXPECT_EQ(AvailableMemory((folder / "none").c_str()), 0u);
  EXPECT_LE(AvailableMemory(), uint64_t{1} << 56);
}

TEST(MachineMemory, SizesInWords) {
  EXPECT_EQ(FormatBytes(0), "0 bytes");
  EXPECT_EQ(FormatBytes(1), "1 byte");
  EXPECT_EQ(FormatBytes(1023), "1023 bytes");
  EXPECT_EQ(FormatBytes(1536), "1536 bytes (1.5 KiB)");
  EXPECT_EQ(FormatBytes(uint64_t{3} << 30), "3221225472 bytes (3.0 GiB)");
  EXPECT_EQ(FormatBytes(~uint64_t{0}), "18446744073709551615 bytes (16.0 EiB)");
}

TEST(StorageMapFile, ShowsTheFileFromAnyOffset) {
  const TempDir folder;
  const std::string path = folder / "f";
  std::vector<std::byte> bytes(20'000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((i * 7 + i / 256) & 0xff);
  test::WriteBytes(path, bytes);
  for (const uint64_t offset : {0u, 64u, 4096u, 4160u, 12'288u}) {
    const int fd = open(path.c_str(), O_RDONLY);
    Result<std::unique_ptr<Storage>> storage = Storage::MapFile(fd, offset, bytes.size() - offset);
    close(fd);
    ASSERT_TRUE(storage.ok()) << MessageOf(storage);
    EXPECT_FALSE((*storage)->writable());
    EXPECT_EQ((*storage)->bytes(), bytes.size() - offset);
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*storage)->data()) % 64, 0u);
    EXPECT_EQ(std::memcmp((*storage)->data(), bytes.data() + offset, bytes.size() - offset), 0);
    const MemoryReport report = (*storage)->Report();
    EXPECT_EQ(report.bytes, bytes.size() - offset);
    EXPECT_EQ(report.resident_bytes, report.bytes);
  }
}

TEST(StorageMapFile, RefusesWhatCannotBeMapped) {
  const TempDir folder;
  test::WriteBytes(folder / "f", std::vector<std::byte>(100));
  const int fd = open((folder / "f").c_str(), O_RDONLY);
  EXPECT_EQ(CodeOf(Storage::MapFile(fd, 0, 0)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Storage::MapFile(fd, 0, ~uint64_t{0})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Storage::MapFile(fd, ~uint64_t{0}, 100)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Storage::MapFile(fd, 0, uint64_t{1} << 55)), ErrorCode::kOutOfMemory);
  close(fd);
  EXPECT_EQ(CodeOf(Storage::MapFile(-1, 0, 100)), ErrorCode::kIo);
}

}  // namespace
}  // namespace bloomline::detail
